#include "stoker/tune/config_file.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "stoker/base/error.h"
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
    read_toml();
  } else {
    throw Error(ErrorKind::usage, fmt::format("`--config` takes a .json, .yaml or .toml file, not `{}`", name_),
                "--template puts {knob} into any other text file");
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

// Line by line; what spans lines (lists, texts in triple quotes) is skipped over and cannot be replaced.
void ConfigFile::read_toml() {
  std::string table;
  std::vector<std::pair<std::string, int>> counts;  // of [[tables]]
  std::size_t line = 0;
  const auto trimmed = [](std::string_view part) {
    while (!part.empty() && (part.front() == ' ' || part.front() == '\t')) part.remove_prefix(1);
    while (!part.empty() && (part.back() == ' ' || part.back() == '\t' || part.back() == '\r')) part.remove_suffix(1);
    return part;
  };
  // `a . "b"` as a.b
  const auto dotted = [&](std::string_view part) {
    std::string out;
    for (const char c : part) {
      if (c != '"' && c != '\'' && c != ' ' && c != '\t') out += c;
    }
    return out;
  };
  for (std::size_t at = 0; at < text_.size();) {
    ++line;
    std::size_t end = std::min(text_.find('\n', at), text_.size());
    const std::string_view whole = trimmed(std::string_view(text_).substr(at, end - at));
    const std::size_t begin = at;
    at = end + 1;
    if (whole.empty() || whole.front() == '#') continue;
    if (whole.starts_with("[[")) {
      const std::string name = dotted(whole.substr(2, whole.find("]]") - 2));
      auto count = std::find_if(counts.begin(), counts.end(), [&](const auto& one) { return one.first == name; });
      if (count == counts.end()) count = counts.insert(counts.end(), {name, -1});
      table = fmt::format("{}.{}", name, ++count->second);
      continue;
    }
    if (whole.front() == '[') {
      if (whole.find(']') == std::string_view::npos) throw not_readable(name_, line, "a table's name does not end");
      table = dotted(whole.substr(1, whole.find(']') - 1));
      values_.push_back({table});
      continue;
    }
    const std::size_t equals = whole.find('=');
    if (equals == std::string_view::npos)
      throw not_readable(name_, line, "there is no `=` between a key and its value");
    const std::string key = joined(table, dotted(whole.substr(0, equals)));
    std::size_t from = text_.find('=', begin) + 1;
    while (from < text_.size() && (text_[from] == ' ' || text_[from] == '\t')) ++from;
    const std::string_view rest = std::string_view(text_).substr(from);
    if (rest.starts_with("\"\"\"") || rest.starts_with("'''")) {
      const std::size_t close = text_.find(rest.substr(0, 3), from + 3);
      if (close == std::string::npos) throw not_readable(name_, line, "a text is never closed");
      line += static_cast<std::size_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(end),
                                                  text_.begin() + static_cast<std::ptrdiff_t>(close), '\n'));
      at = std::min(text_.find('\n', close), text_.size() - 1) + 1;
      values_.push_back({key});
    } else if (rest.starts_with('[') || rest.starts_with('{')) {
      int depth = 0;
      std::size_t i = from;
      for (; i < text_.size(); ++i) {
        const char c = text_[i];
        if (c == '"' || c == '\'') {
          const std::size_t size = extent_of(text_, i, "");
          if (size == 0) throw not_readable(name_, line, "a text is never closed");
          i += size - 1;
        } else if (c == '#') {
          i = std::min(text_.find('\n', i), text_.size() - 1);
        }
        if (c == '\n') ++line;
        if (c == '[' || c == '{') ++depth;
        if ((c == ']' || c == '}') && --depth == 0) break;
      }
      if (depth != 0) throw not_readable(name_, line, "a list or table is never closed");
      at = std::min(text_.find('\n', i), text_.size() - 1) + 1;
      values_.push_back({key});
    } else {
      std::size_t size = rest.starts_with('"') || rest.starts_with('\'')
                             ? extent_of(text_, from, "")
                             : trimmed(rest.substr(0, std::min(rest.find_first_of("#\n"), rest.size()))).size();
      if (size == 0) throw not_readable(name_, line, "a key has no value");
      values_.push_back({key, from, size});
    }
  }
}

const ConfigFile::Value& ConfigFile::find(std::string_view key) const {
  for (const Value& value : values_) {
    if (value.key != key) continue;
    const auto defined = std::find_if(values_.begin(), values_.end(),
                                      [&](const Value& one) { return one.size > 0 && one.at == value.at; });
    if (value.size > 0 && &*defined == &value) return value;
    if (value.size > 0) {
      throw Error(ErrorKind::usage,
                  fmt::format("cannot set `{}` in `{}`: it is an alias of `{}`", key, name_, defined->key),
                  "set that one, or write the value out");
    }
    throw Error(ErrorKind::usage,
                fmt::format("cannot set `{}` in `{}`: it is not a single value on one line", key, name_),
                "set the keys below it, or use --template");
  }
  std::vector<std::string_view> keys;
  for (const Value& value : values_) {
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
std::string ConfigFile::written(const Value& value, const std::string& word) const {
  const char before = text_[value.at];
  if (before == '\'') {
    std::string out = "'";
    for (const char c : word) out += c == '\'' && kind_ == Kind::yaml ? "''" : std::string(1, c);
    return out + "'";
  }
  if (before == '"') return Json(word).dump();
  if (is_bare(word) && !(kind_ == Kind::toml && word == "null")) return word;
  const bool is_truth = word == "True" || word == "False";
  if (is_truth) return kind_ == Kind::yaml ? word : word == "True" ? "true" : "false";
  return kind_ == Kind::yaml && is_plain_yaml(word) ? word : Json(word).dump();
}

std::string ConfigFile::with(const Point& point, const std::vector<std::string>& keys) const {
  std::vector<std::pair<const Value*, std::string>> edits;
  for (const std::string& key : keys) {
    const Value& value = find(key);
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
