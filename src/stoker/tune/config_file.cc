#include "stoker/tune/config_file.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/json.h"

namespace stoker::tune {
namespace {

std::string joined(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

Error not_readable(const std::string& name, std::size_t line, std::string_view why) {
  return Error(ErrorKind::corrupt, fmt::format("cannot read `{}`, line {}: {}", name, line, why));
}

YAML::Node parse(const std::string& text, const std::string& name) {
  try {
    return YAML::Load(text);
  } catch (const YAML::Exception& error) {
    throw not_readable(name, static_cast<std::size_t>(std::max(0, error.mark.line)) + 1, error.msg);
  }
}

// How many bytes from `at` are the scalar that a parser read as `scalar`; 0: not in one piece.
std::size_t extent_of(std::string_view text, std::size_t at, std::string_view scalar) {
  if (at >= text.size()) return 0;
  const char quote = text[at];
  if (quote != '"' && quote != '\'') return !scalar.empty() && text.substr(at).starts_with(scalar) ? scalar.size() : 0;
  for (std::size_t end = at + 1; end < text.size() && text[end] != '\n'; ++end) {
    if (quote == '"' && text[end] == '\\') {
      ++end;
    } else if (text[end] == quote) {
      if (quote == '\'' && end + 1 < text.size() && text[end + 1] == quote) {
        ++end;
        continue;
      }
      return end + 1 - at;
    }
  }
  return 0;
}

bool is_bare(std::string_view word) {  // a number, a truth or nothing, in all three kinds
  const std::optional<Json> value = Json::try_parse(word);
  return value && (value->is_number() || value->is_boolean() || value->is_null());
}

bool is_plain_yaml(std::string_view word) {
  return !word.empty() && word.find_first_of(":#{}[],&*!|>'\"%@`\n\t") == std::string_view::npos &&
         word.front() != '-' && word.front() != '?' && word.front() != ' ' && word.back() != ' ';
}

}  // namespace

ConfigFile::ConfigFile(std::string text, std::string name) : text_(std::move(text)), name_(std::move(name)) {
  const std::size_t dot = name_.rfind('.');
  const std::string extension = dot == std::string::npos ? "" : name_.substr(dot);
  if (extension == ".json") {
    kind_ = Kind::json;
    (void)Json::parse(text_, name_);  // yaml-cpp reads more than JSON allows
    read_yaml();
  } else if (extension == ".yaml" || extension == ".yml") {
    kind_ = Kind::yaml;
    read_yaml();
  } else if (extension == ".toml") {
    kind_ = Kind::toml;
    values_ = toml_values(text_, name_);
  } else {
    throw Error(ErrorKind::usage,
                format_text("`{}` takes a .json, .yaml or .toml file, not `{}`", option("config"), name_),
                format_text("{} puts {{knob}} into any other text file", option("template")));
  }
}

void ConfigFile::read_yaml() {
  const std::size_t mark_of_order = text_.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  const std::function<void(const YAML::Node&, const std::string&)> walk = [&](const YAML::Node& node,
                                                                              const std::string& path) {
    if (node.IsMap()) {
      for (const auto& entry : node) {
        if (entry.first.IsScalar()) walk(entry.second, joined(path, entry.first.Scalar()));
      }
      if (!path.empty()) values_.push_back({path});
    } else if (node.IsSequence()) {
      std::size_t index = 0;
      for (const auto& entry : node) walk(entry, joined(path, std::to_string(index++)));
      if (!path.empty()) values_.push_back({path});
    } else {
      std::size_t at = mark_of_order + static_cast<std::size_t>(std::max(0, node.Mark().pos));
      while (kind_ == Kind::yaml && at < text_.size() &&
             (text_[at] == '&' || text_[at] == '!')) {  // an anchor or a tag
        at = text_.find_first_not_of(" \t", std::min(text_.find_first_of(" \t\n", at), text_.size()));
      }
      at = std::min(at, text_.size());
      const std::string scalar = node.IsScalar() ? node.Scalar() : "";
      const bool stands_for_nothing =
          node.IsNull() && (text_.compare(at, 4, "null") == 0 || text_.compare(at, 1, "~") == 0);
      std::size_t size = stands_for_nothing ? (text_[at] == '~' ? 1 : 4) : extent_of(text_, at, scalar);
      values_.push_back({path, at, size});
    }
  };
  walk(parse(text_, name_), "");
}

const PlacedValue& ConfigFile::find(std::string_view key) const {
  for (const PlacedValue& value : values_) {
    if (value.key != key) continue;
    const auto defined = std::find_if(values_.begin(), values_.end(),
                                      [&](const PlacedValue& one) { return one.size > 0 && one.at == value.at; });
    if (value.size > 0 && &*defined == &value) return value;
    if (value.size > 0) {
      throw Error(ErrorKind::usage,
                  fmt::format("cannot set `{}` in `{}`: it is an alias of `{}`", key, name_, defined->key),
                  "set that one, or write the value out");
    }
    throw Error(ErrorKind::usage,
                fmt::format("cannot set `{}` in `{}`: it is not a single value on one line", key, name_),
                format_text("set the keys below it, or use {}", option("template")));
  }
  std::vector<std::string_view> keys;
  for (const PlacedValue& value : values_) {
    if (value.size > 0) keys.push_back(value.key);
  }
  std::string near = nearest(key, keys.data(), keys.size());
  if (near.empty()) {  // the same last word elsewhere
    const std::string_view last = key.substr(key.rfind('.') == std::string_view::npos ? 0 : key.rfind('.') + 1);
    for (const std::string_view one : keys) {
      const std::size_t dot = one.rfind('.');
      if (near.empty() && one.substr(dot == std::string_view::npos ? 0 : dot + 1) == last) near = one;
    }
  }
  throw Error(
      ErrorKind::not_found, fmt::format("`{}` has no key `{}`", name_, key),
      near.empty()
          ? fmt::format(
                "its keys: `{}`",
                fmt::join(keys.begin(),
                          keys.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(keys.size(), 20)), "`, `"))
          : fmt::format("did you mean `{}`?", near));
}

void ConfigFile::check(std::string_view key) const {
  (void)find(key);
}

// Quoted as it was; a word that is no number or truth is quoted where the file's kind wants it.
std::string ConfigFile::written(const PlacedValue& value, const std::string& word) const {
  const char before = text_[value.at];
  if (before == '\'' && (kind_ != Kind::toml || word.find_first_of("'\n\r") == std::string::npos)) {
    std::string out = "'";
    for (const char c : word) out += c == '\'' && kind_ == Kind::yaml ? "''" : std::string(1, c);
    return out + "'";
  }
  if (before == '"' || before == '\'') return Json(word).dump();
  if (kind_ == Kind::toml && is_toml_value(word)) return word;
  if (is_bare(word) && !(kind_ == Kind::toml && word == "null")) return word;
  const bool is_truth = word == "True" || word == "False";
  if (is_truth) return kind_ == Kind::yaml ? word : word == "True" ? "true" : "false";
  return kind_ == Kind::yaml && is_plain_yaml(word) ? word : Json(word).dump();
}

std::string ConfigFile::with(const Point& point, const std::vector<std::string>& keys) const {
  std::vector<std::pair<const PlacedValue*, std::string>> edits;
  for (const std::string& key : keys) {
    const PlacedValue& value = find(key);
    edits.emplace_back(&value, written(value, point.at(key)));
  }
  std::sort(edits.begin(), edits.end(), [](const auto& a, const auto& b) { return a.first->at > b.first->at; });
  std::string text = text_;
  for (const auto& [value, word] : edits) text.replace(value->at, value->size, word);
  return text;
}

void add_grid_file(Grid& grid, const std::string& text, const std::string& name) {
  const YAML::Node root = parse(text, name);
  if (!root.IsMap()) {
    throw Error(ErrorKind::corrupt, fmt::format("cannot read `{}`: a grid is a list of knobs with their values", name),
                "write a line for each: `batch_size: [32, 64, 128]`");
  }
  for (const auto& entry : root) {
    const std::string knob = entry.first.IsScalar() ? entry.first.Scalar() : "";
    const YAML::Node& values = entry.second;
    std::string list;
    const auto add = [&](const YAML::Node& value) {
      if (!value.IsScalar() || value.Scalar().find(',') != std::string::npos) {
        throw not_readable(name, static_cast<std::size_t>(std::max(0, value.Mark().line)) + 1,
                           fmt::format("a value of `{}` is not one word or number", knob));
      }
      list += (list.empty() ? "" : ",") + value.Scalar();
    };
    if (values.IsSequence()) {
      for (const auto& value : values) add(value);
    } else {
      add(values);
    }
    grid.add(knob + "=" + list);
  }
}

}  // namespace stoker::tune
