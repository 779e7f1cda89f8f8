// A sentence for people that may name options of the loader. Each face spells an option its own way: Python writes
// `memory_limit` and `on_error="skip"`, the command line `--memory-limit` and `--on-error skip`. A Text keeps the
// options apart from the words around them until a face reads it, so no face has to find option names in prose.
// format_text() (base/format_text.h) makes one that names options. A value; may be copied between threads.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

// An option inside a sentence, with the values that the sentence recommends or quotes, if any. Only format_text() takes
// it: fmt::format does not, so that the mark never gets into a plain string.
struct OptionName {
  std::string name;
  std::vector<std::string> values;
};

OptionName option(std::string_view name);                                                  // memory_limit
OptionName option(std::string_view name, std::string_view value);                          // on_error="skip"
OptionName option(std::string_view name, std::initializer_list<std::string_view> values);  // color="rgb" or "gray"

// The flag of an option: the same word with dashes. `color` is `--image-color`, since `--color` is the terminal's.
std::string flag_of(std::string_view option);

class Text {
 public:
  Text() noexcept = default;
  // A sentence that names no option. It becomes one_line(): names of files in it may hold anything.
  Text(const std::string& plain);  // NOLINT: most sentences are plain
  Text(const char* plain);         // NOLINT

  bool empty() const noexcept { return marked_.empty(); }
  std::size_t capacity() const noexcept { return marked_.capacity(); }  // bytes of memory that it holds

  std::string in_python() const;
  // An option is spelled as a flag where `has_flag` knows its name, else as in Python.
  std::string in_flags(const std::function<bool(std::string_view option)>& has_flag) const;

  friend bool operator==(const Text&, const Text&) = default;

 private:
  friend struct TextMaker;
  std::string marked_;  // options stand between control characters, which nothing else in it can hold
};

}  // namespace stoker
