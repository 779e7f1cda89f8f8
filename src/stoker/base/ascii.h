// Letters of names and extensions, of ASCII only: the locale changes nothing, and other bytes stay as they are.
#pragma once

#include <string>
#include <string_view>

namespace stoker {

constexpr char to_lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline std::string to_lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = to_lower(c);
  return result;
}

// Whether `text` ends with `end`, which is in lower case, in upper or lower case.
constexpr bool ends_with_any_case(std::string_view text, std::string_view end) noexcept {
  if (text.size() < end.size()) return false;
  text.remove_prefix(text.size() - end.size());
  for (std::size_t i = 0; i < end.size(); ++i) {
    if (to_lower(text[i]) != end[i]) return false;
  }
  return true;
}

}  // namespace stoker
