#include "stoker/base/plain_text.h"

#include <cstddef>
#include <cstdint>

#include "stoker/base/utf8.h"

namespace stoker {
namespace {

constexpr char kEscape = '\x1B', kBell = '\x07';

void add_character(std::string& out, std::uint32_t code) {
  const auto more = [&](unsigned shift) { out += static_cast<char>(0x80u | (code >> shift & 0x3F)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0u | code >> 6);
    more(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0u | code >> 12);
    more(6), more(0);
  } else {
    out += static_cast<char>(0xF0u | code >> 18);
    more(12), more(6), more(0);
  }
}

// Where the escape sequence that begins at `at` ends. One that is cut ends with the line.
std::size_t end_of_escape(std::string_view line, std::size_t at) {
  const char kind = at + 1 < line.size() ? line[at + 1] : '\0';
  if (kind == '[') {  // parameters and intermediate bytes, then one letter
    std::size_t end = at + 2;
    while (end < line.size() && line[end] >= 0x20 && line[end] < 0x40) ++end;
    return end < line.size() ? end + 1 : end;
  }
  if (kind == ']') {  // up to BEL or ESC backslash
    for (std::size_t end = at + 2; end < line.size(); ++end) {
      if (line[end] == kBell) return end + 1;
      if (line[end] == kEscape) return end + 1 < line.size() && line[end + 1] == '\\' ? end + 2 : end;
    }
    return line.size();
  }
  std::size_t end = at + 1;
  while (end < line.size() && line[end] >= 0x20 && line[end] < 0x30) ++end;  // ESC ( B
  return end < line.size() && line[end] >= 0x30 ? end + 1 : end;
}

}  // namespace

bool has_utf16_mark(std::string_view text) noexcept {
  return text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF");
}

std::string utf8_of_marked(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) return std::string(text.substr(3));
  if (!has_utf16_mark(text)) return std::string(text);
  const std::size_t low = text[0] == '\xFF' ? 0 : 1;
  const auto unit = [&](std::size_t at) {
    return static_cast<std::uint32_t>(static_cast<std::uint8_t>(text[at + low]) |
                                      static_cast<std::uint8_t>(text[at + 1 - low]) << 8);
  };
  std::string out;
  std::size_t at = 2;
  for (; at + 1 < text.size(); at += 2) {
    const std::uint32_t first = unit(at);
    if (first < 0xD800 || first >= 0xE000) {
      add_character(out, first);
      continue;
    }
    const std::uint32_t second = first < 0xDC00 && at + 3 < text.size() ? unit(at + 2) : 0;
    if (second >= 0xDC00 && second < 0xE000) {
      add_character(out, 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00));
      at += 2;
    } else {
      out += kNoCharacter;
    }
  }
  if (at < text.size()) out += kNoCharacter;
  return out;
}

std::string without_escapes(std::string_view line) {
  std::string out;
  out.reserve(line.size());
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] == kEscape) {
      at = end_of_escape(line, at);
    } else {
      out += line[at++];
    }
  }
  return out;
}

}  // namespace stoker
