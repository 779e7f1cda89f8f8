#include "stoker/storage/s3/profile.h"

#include <algorithm>

#include <fmt/format.h>

#include "stoker/base/ascii.h"

namespace stoker::storage::s3 {
namespace {

std::string_view stripped(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// A comment behind a value begins with a blank: a secret may hold '#'.
std::string_view without_comment(std::string_view value) {
  for (const std::string_view mark : {" #", " ;", "\t#", "\t;"}) value = value.substr(0, value.find(mark));
  return stripped(value);
}

std::string single_spaced(std::string_view text) {
  std::string out;
  for (const char c : stripped(text)) {
    const bool is_blank = c == ' ' || c == '\t';
    if (!is_blank || !out.ends_with(' ')) out += is_blank ? ' ' : c;
  }
  return out;
}

const Section* section_of(const Sections& config, std::string_view name) {
  auto found = config.find(fmt::format("profile {}", name));
  if (found == config.end() && name == "default") found = config.find("default");
  return found == config.end() ? nullptr : &found->second;
}

}  // namespace

Sections parse_sections(std::string_view text) {
  Sections sections;
  Section* section = nullptr;
  std::string above;  // the key that indented lines belong to
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view content = stripped(line);
    if (content.empty() || content.front() == '#' || content.front() == ';') continue;
    if (content.front() == '[') {
      const std::size_t close = content.find(']');
      section = close == std::string_view::npos ? nullptr : &sections[single_spaced(content.substr(1, close - 1))];
      above.clear();
      continue;
    }
    const std::size_t equals = content.find('=');
    if (section == nullptr || equals == std::string_view::npos) continue;
    const std::string key = to_lower(stripped(content.substr(0, equals)));
    const std::string value(without_comment(content.substr(equals + 1)));
    const bool is_below = (line.front() == ' ' || line.front() == '\t') && !above.empty();
    if (!is_below) above = value.empty() ? key : std::string();
    (*section)[is_below ? fmt::format("{}.{}", above, key) : key] = value;
  }
  return sections;
}

Section profile_of(const Sections& config, const Sections& credentials, std::string_view name) {
  Section all;
  if (const Section* const section = section_of(config, name)) all = *section;
  if (const auto found = credentials.find(std::string(name)); found != credentials.end()) {
    for (const auto& [key, value] : found->second) all[key] = value;
  }
  return all;
}

bool has_profile(const Sections& config, const Sections& credentials, std::string_view name) {
  return section_of(config, name) != nullptr || credentials.contains(std::string(name));
}

}  // namespace stoker::storage::s3
