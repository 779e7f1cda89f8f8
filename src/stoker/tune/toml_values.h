// Where the values of a TOML file stand in its text, so that one can be replaced and everything else stays. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::tune {

struct PlacedValue {
  std::string key;               // dotted: `training.workers`, `stages.0.batch`
  std::size_t at = 0, size = 0;  // in the text; size 0: it is a table, a list or a text in triple quotes
};

// Values of tables, inline tables and lists, in the order of the text. `name` is the file's, for messages.
// Throws Error(corrupt) naming the line.
std::vector<PlacedValue> toml_values(const std::string& text, const std::string& name);

// Whether a word is a value of TOML that needs no quotes: a number (also 0x10), a truth, a date or a time.
bool is_toml_value(std::string_view word);

}  // namespace stoker::tune
