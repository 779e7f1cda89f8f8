// Text that other programs may not have written as UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stoker {

inline constexpr std::string_view kNoCharacter = "\xEF\xBF\xBD";  // U+FFFD

// Bytes of the character that begins at `at`; 0: it is none.
std::size_t character_bytes(std::string_view text, std::size_t at) noexcept;

// The same text with kNoCharacter for each byte that is none; at most `most` bytes of it, then "...".
std::string as_utf8(std::string_view text, std::size_t most = std::string_view::npos);

}  // namespace stoker
