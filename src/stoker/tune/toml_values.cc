#include "stoker/tune/toml_values.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#define TOML_ENABLE_FORMATTERS 0  // this file alone includes toml++, and only reads
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "stoker/base/error.h"

namespace stoker::tune {
namespace {

// Byte offsets of the parser's positions: lines from 1, columns from 1 in code points.
class Places {
 public:
  explicit Places(std::string_view text) : text_(text) {
    lines_.push_back(text.starts_with("\xEF\xBB\xBF") ? 3 : 0);
    for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
      lines_.push_back(at + 1);
    }
  }

  std::size_t operator[](const toml::source_position& place) const {
    std::size_t at = lines_.at(place.line - 1);
    for (auto left = place.column - 1; left > 0 && at < text_.size(); --left) {
      ++at;
      while (at < text_.size() && (static_cast<unsigned char>(text_[at]) & 0xC0) == 0x80) ++at;
    }
    return at;
  }

 private:
  std::string_view text_;
  std::vector<std::size_t> lines_;
};

// The size of the value that begins at `at`; 0 if it is in triple quotes.
std::size_t size_of(std::string_view text, std::size_t at) {
  const char quote = text[at];
  if (quote != '"' && quote != '\'') {  // a number, a truth or a date
    std::size_t end = std::min(text.find_first_of(",]}#\r\n", at), text.size());
    while (end > at && (text[end - 1] == ' ' || text[end - 1] == '\t')) --end;
    return end - at;
  }
  if (text.substr(at, 3) == std::string(3, quote)) return 0;
  std::size_t end = at + 1;
  for (; text[end] != quote; ++end) {
    if (quote == '"' && text[end] == '\\') ++end;
  }
  return end + 1 - at;
}

class Walk {
 public:
  explicit Walk(const std::string& text) : text_(text), places_(text) {}

  void add(const toml::node& node, const std::string& path) {
    if (const toml::table* table = node.as_table()) {
      for (const auto& [key, value] : *table)
        add(value, path.empty() ? std::string(key) : fmt::format("{}.{}", path, key.str()));
    } else if (const toml::array* list = node.as_array()) {
      std::size_t index = 0;
      for (const auto& value : *list) add(value, fmt::format("{}.{}", path, index++));
    } else {
      const std::size_t at = places_[node.source().begin];
      found.push_back({path, at, size_of(text_, at)});
      return;
    }
    if (!path.empty()) found.push_back({path});
  }

  std::vector<PlacedValue> found;

 private:
  const std::string& text_;
  Places places_;
};

}  // namespace

std::vector<PlacedValue> toml_values(const std::string& text, const std::string& name) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    throw Error(ErrorKind::corrupt, fmt::format("cannot read `{}`, line {}: {}", name,
                                                parsed.error().source().begin.line, parsed.error().description()));
  }
  Walk walk(text);
  walk.add(parsed.table(), "");
  std::stable_sort(walk.found.begin(), walk.found.end(),
                   [](const PlacedValue& a, const PlacedValue& b) { return a.at < b.at; });
  return std::move(walk.found);
}

bool is_toml_value(std::string_view word) {
  if (word.empty() || word.find_first_of("\"'#[]{},\r\n") != std::string_view::npos) return false;
  const toml::parse_result parsed = toml::parse(fmt::format("x = {}", word));
  return parsed && parsed.table().size() == 1;
}

}  // namespace stoker::tune
