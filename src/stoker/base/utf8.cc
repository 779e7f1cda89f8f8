#include "stoker/base/utf8.h"

#include <algorithm>
#include <cstdint>

namespace stoker {

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

}  // namespace stoker
