#include "stoker/base/json_facts.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/units.h"

namespace stoker {

std::optional<double> number_at(const Json& json, std::initializer_list<const char*> path) {
  const Json* at = &json;
  for (const char* key : path) {
    const Json* const found = at->find(key);
    if (found == at->end()) return std::nullopt;
    at = found;
  }
  return at->is_number() ? std::optional(at->get<double>()) : std::nullopt;
}

std::string text_at(const Json& object, std::string_view key) {
  const Json& value = object[key];
  return value.is_string() ? value.text() : std::string();
}

std::vector<std::string> strings_at(const Json& object, std::string_view key) {
  std::vector<std::string> strings;
  const Json& values = object[key];
  if (!values.is_array()) return strings;
  for (const Json& value : values) {
    if (value.is_string()) strings.push_back(value.text());
  }
  return strings;
}

std::string value_text(std::string_view key, const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.text();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number()) {
    const double number = value.get<double>();
    if (key.ends_with("_bytes")) return format_bytes(static_cast<std::uint64_t>(std::clamp(number, 0.0, 9e18)));
    return value.is_whole() ? value.dump() : fmt::format("{:.6g}", number);
  }
  std::string text;
  if (value.is_array()) {
    for (const Json& one : value) text += (text.empty() ? "" : ", ") + value_text(key, one);
    return text;
  }
  for (const auto& [name, one] : value.items())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value_text(name, one));
  return text;
}

std::vector<Fact> facts_of(const Json& object, std::initializer_list<std::string_view> without) {
  std::vector<Fact> facts;
  if (!object.is_object()) return facts;
  for (const auto& [key, value] : object.items()) {
    if (std::find(without.begin(), without.end(), key) != without.end()) continue;
    std::string text = value_text(key, value);
    if (!text.empty())
      facts.push_back({key.ends_with("_bytes") ? key.substr(0, key.size() - 6) : key, std::move(text)});
  }
  return facts;
}

}  // namespace stoker
