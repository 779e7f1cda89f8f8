#include "stoker/base/utf8.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace stoker {
namespace {

std::string escaped(std::uint32_t code) {
  switch (code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return code < 0x100 ? fmt::format("\\x{:02X}", code) : fmt::format("\\u{:04X}", code);
  }
}

std::string shown(std::string_view text, bool keeps_bytes) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = character_bytes(text, at);
    const std::string_view next = text.substr(at, std::max<std::size_t>(1, size));
    if (size == 0) {
      out += keeps_bytes ? std::string(next) : escaped(static_cast<std::uint8_t>(next[0]));
    } else if (commands_terminal(next)) {
      out += escaped(code_of(next));
    } else {
      out += next;
    }
    at += next.size();
  }
  return out;
}

}  // namespace

std::uint32_t code_of(std::string_view character) noexcept {
  const auto first = static_cast<std::uint8_t>(character[0]);
  if (character.size() == 1) return first;
  std::uint32_t code = first & (0x7Fu >> character.size());
  for (const char c : character.substr(1)) code = code << 6 | (static_cast<std::uint8_t>(c) & 0x3F);
  return code;
}

bool commands_terminal(std::string_view character) noexcept {
  const std::uint32_t code = code_of(character);
  const bool is_control = code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029;
  const bool turns = code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
                     (code >= 0x2066 && code <= 0x2069);
  return is_control || turns;
}

std::size_t character_bytes(std::string_view text, std::size_t at) noexcept {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<std::uint8_t>(text[i]) : 0u; };
  const unsigned first = byte(at);
  const std::size_t size = first < 0x80                    ? 1
                           : first >= 0xC2 && first < 0xE0 ? 2
                           : first >= 0xE0 && first < 0xF0 ? 3
                           : first >= 0xF0 && first < 0xF5 ? 4
                                                           : 0;
  unsigned code = size == 1 ? first : size == 2 ? first & 0x1F : size == 3 ? first & 0x0F : first & 0x07;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(at + i) & 0x3F);
  }
  const bool is_overlong = (size == 3 && code < 0x800) || (size == 4 && (code < 0x10000 || code > 0x10FFFF));
  const bool is_surrogate = code >= 0xD800 && code < 0xE000;
  return is_overlong || is_surrogate ? 0 : size;
}

std::string as_utf8(std::string_view text, std::size_t most) {
  std::string out;
  out.reserve(std::min(text.size(), most));
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = character_bytes(text, at);
    const std::string_view next = size == 0 ? kNoCharacter : text.substr(at, size);
    if (out.size() + next.size() > most) return out + "...";
    out += next;
    at += std::max<std::size_t>(1, size);
  }
  return out;
}

std::string one_line(std::string_view text) {
  return shown(text, true);
}

std::string printable(std::string_view text) {
  return shown(text, false);
}

}  // namespace stoker
