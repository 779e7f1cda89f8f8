// Text that other programs wrote for a terminal, or in UTF-16, as plain UTF-8. Pure functions, safe from any thread.
#pragma once

#include <string>
#include <string_view>

namespace stoker {

// Whether the first bytes are the byte order mark of UTF-16, of either byte order.
bool has_utf16_mark(std::string_view text) noexcept;

// The text without its byte order mark. UTF-16 becomes UTF-8, with U+FFFD for what is no character; a text without a
// mark stays as it is.
std::string utf8_of_marked(std::string_view text);

// The line without escape sequences: colours (ESC [ ... m), moves of the cursor, titles (ESC ] ... BEL).
std::string without_escapes(std::string_view line);

}  // namespace stoker
