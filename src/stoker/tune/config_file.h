// A copy of a user's JSON, YAML or TOML file with the values of some dotted keys replaced: `training.workers`,
// `stages.0.batch`. The text is edited where the value stands, so comments, order and quoting stay as they are. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stoker/tune/knobs.h"
#include "stoker/tune/toml_values.h"

namespace stoker::tune {

class ConfigFile {
 public:
  // The kind is told by the name: .json, .yaml, .yml, .toml. Throws Error: usage for another kind, corrupt naming the
  // line.
  ConfigFile(std::string text, std::string name);

  // Throws Error(not_found) with the nearest key, Error(usage) for a key that holds a table, a list or several lines.
  void check(std::string_view key) const;
  // Of the knobs, those in `keys`.
  std::string with(const Point& point, const std::vector<std::string>& keys) const;

 private:
  enum class Kind : std::uint8_t { json, yaml, toml };

  void read_yaml();  // JSON too
  const PlacedValue& find(std::string_view key) const;
  std::string written(const PlacedValue& value, const std::string& word) const;

  std::string text_, name_;
  Kind kind_ = Kind::json;
  std::vector<PlacedValue> values_;
};

// A grid as a YAML or JSON file: `batch_size: [32, 64]`, a knob per line. Throws Error.
void add_grid_file(Grid& grid, const std::string& text, const std::string& name);

}  // namespace stoker::tune
