// Every option of a loader, declared once: name, values, default and meaning. The flags of the command line, the
// keywords of Python, the knobs of `stoker tune` and the tables of docs/reference/loader.md are made from these rows or
// compared with them by a test. Constant; safe from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "stoker/dataset/dataset.h"
#include "stoker/loader/options.h"

namespace stoker::loader {

// What a user asks of a loader and of the data set below it.
struct Request {
  LoaderOptions loader;
  dataset::OpenOptions opening;
};

// An object of a type that no option takes, as a message shows it.
struct Unknown {
  std::string text;
  friend bool operator==(const Unknown&, const Unknown&) = default;
};
using Names = std::vector<std::string>;
// The value of an option as a face has it. std::monostate is Python's None.
using Value = std::variant<std::monostate, bool, std::uint64_t, double, std::string, Names, Unknown>;

enum class ValueType : std::uint8_t {
  count,     // a whole number from `least` to `most`
  bytes,     // the same, or a text such as "4GB"
  duration,  // seconds, or a text such as "5m"
  real,      // a number above 0
  word,      // one of `words`
  on_off,
  shuffle,  // on, off, or a text such as "blocks:32:4096"
  text,
  names,  // a list of names, or the path of a file with one on each line
};

// The headings under which help and docs list the options.
enum class Heading : std::uint8_t { samples, order, output, resources, bad_samples };

struct Option {
  std::string_view name;  // the field, the keyword and the JSON key; flag_of(name) is the flag
  Heading heading;
  ValueType type;
  std::string_view placeholder{};  // of the value, in help: "N"
  std::string_view unset{};        // the default as people read it, where leaving it out is the only way to get it
  std::string_view meaning{};      // one line, lower case
  void (*set)(Request& request, const Value& value) = nullptr;
  Value (*get)(const Request& request) = nullptr;
  std::uint64_t least = 0, most = 0;
  std::span<const std::string_view> words{};
  bool takes_auto = false;  // "auto" is a value, and the default
  bool takes_none = false;  // None in Python stands for the default
  bool is_knob = false;     // `stoker tune` may vary it
  bool is_brief = false;    // `-h` lists it
};

std::span<const Option> option_table() noexcept;
const Option& find_option(std::string_view name);  // throws Error(usage), offering the nearest

// A word of the command line or of a grid, as a value of the option's type. A word that is none stays a text, which
// set_option() refuses.
Value read_value(const Option& option, std::string_view word);

// Throws Error(usage) about the option, saying which values are right.
void set_option(Request& request, const Option& option, const Value& value);

// The same of a word, without a request to change.
void check_value(const Option& option, std::string_view word);
// The same of every option, as a C++ caller filled them in. Throws Error(usage), also where two contradict each other.
void check_options(const LoaderOptions& options);

// The defaults, changed by what was given. Throws Error(usage), also where two options contradict each other.
struct Given {
  std::string name;
  Value value;
};
Request make_request(const std::vector<Given>& given);

std::string values_text(
    const Option& option);  // "auto or a whole number from 0 to 1,024"; "one of raise, skip, replace, zero"
std::string default_text(const Option& option);  // "auto", "2", "25 % of RAM, at most 8 GB"; empty: none
std::string value_text(const Value& value);      // as the command line takes it: "2", "yes", "exact"

}  // namespace stoker::loader
