#include "entry_point.h"

#include <algorithm>
#include <string_view>

#include "files.h"

namespace stoker::cli {
namespace {

bool is_identifier(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

bool names_function(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || !is_identifier(std::string_view(text).substr(colon + 1)) || exists(text))
    return false;
  std::string_view where = std::string_view(text).substr(0, colon);
  if (where.ends_with(".py")) return true;
  for (bool more = true; more;) {
    const std::size_t dot = where.find('.');
    more = dot != std::string_view::npos;
    if (!is_identifier(where.substr(0, dot))) return false;
    if (more) where.remove_prefix(dot + 1);
  }
  return true;
}

}  // namespace stoker::cli
