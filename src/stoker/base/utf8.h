// Text that other programs may not have written as UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stoker {

inline constexpr std::string_view kNoCharacter = "\xEF\xBF\xBD";  // U+FFFD

// Bytes of the character that begins at `at`; 0: it is none.
std::size_t character_bytes(std::string_view text, std::size_t at) noexcept;

// Its number, of a character as character_bytes() finds it.
std::uint32_t code_of(std::string_view character) noexcept;

// Whether a terminal obeys the character instead of showing it, or it changes how the text around it is read: control
// characters, line separators, marks that turn the direction.
bool commands_terminal(std::string_view character) noexcept;

// The same text with kNoCharacter for each byte that is none; at most `most` bytes of it, then "...".
std::string as_utf8(std::string_view text, std::size_t most = std::string_view::npos);

// The same text on one line: control characters, and characters that turn the direction of text, become \n, \t, \x1B or
// \u202E. A file name in it can neither forge a line nor command a terminal. Bytes that are not UTF-8 stay.
std::string one_line(std::string_view text);
// The same for a terminal: bytes that are not UTF-8 become \xE9 too.
std::string printable(std::string_view text);

}  // namespace stoker
