#include "stoker/tune/settings_text.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/json.h"

namespace stoker::tune {
namespace {

Json nested(const Point& point) {
  Json all = Json::object();
  for (const auto& [knob, word] : point) {
    Json* at = &all;
    std::size_t from = 0;
    for (std::size_t dot; (dot = knob.find('.', from)) != std::string::npos; from = dot + 1) {
      at = &(*at)[knob.substr(from, dot - from)];
    }
    (*at)[knob.substr(from)] = Json::try_parse(word).value_or(word);
  }
  return all;
}

void add_yaml(const Json& settings, std::size_t depth, std::string& out) {
  for (const auto& [key, value] : settings.items()) {
    out += std::string(2 * depth, ' ') + key + ":";
    if (value.is_object()) {
      out += "\n";
      add_yaml(value, depth + 1, out);
    } else {
      out += " " + (value.is_string() ? value.get<std::string>() : value.dump()) + "\n";
    }
  }
}

std::string as_python(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_null()) return "None";
  if (!value.is_object()) return value.dump();
  std::string out;
  for (const auto& [key, one] : value.items())
    out += fmt::format("{}\"{}\": {}", out.empty() ? "" : ", ", key, as_python(one));
  return "{" + out + "}";
}

}  // namespace

SettingsFormat settings_format(std::string_view file) {
  const std::string extension = std::filesystem::path(file).extension().string();
  if (extension == ".yaml" || extension == ".yml") return SettingsFormat::yaml;
  if (extension == ".py") return SettingsFormat::python;
  if (extension == ".json") return SettingsFormat::json;
  throw Error(ErrorKind::usage, format_text("`{}` writes .json, .yaml or .py, not `{}`", option("apply"), file));
}

std::string as_settings(const Point& point, SettingsFormat format) {
  const Json settings = nested(point);
  std::string out;
  if (format == SettingsFormat::json) return settings.dump(2) + "\n";
  if (format == SettingsFormat::yaml) {
    add_yaml(settings, 0, out);
    return out;
  }
  if (settings.size() != point.size() ||
      std::any_of(settings.begin(), settings.end(), [](const auto& value) { return value.is_object(); }))
    return as_python(settings) + "\n";
  for (const auto& [knob, value] : settings.items())
    out += fmt::format("{}{}={}", out.empty() ? "" : ", ", knob, as_python(value));
  return out + "\n";
}

}  // namespace stoker::tune
