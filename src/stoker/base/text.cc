#include "stoker/base/text.h"

#include <algorithm>
#include <utility>

#include "stoker/base/format_text.h"

namespace stoker {
namespace {

constexpr char kBegin = '\x01', kValue = '\x02', kEnd = '\x03';

bool is_bare_in_python(std::string_view value) {
  if (value == "True" || value == "False" || value == "None") return true;
  return !value.empty() && value.find_first_not_of("0123456789.") == std::string_view::npos;
}

std::string joined(const std::vector<std::string>& values, std::string_view quote) {
  std::string out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += i + 1 == values.size() ? " or " : ", ";
    const bool is_bare = is_bare_in_python(values[i]);
    out.append(is_bare ? "" : quote).append(values[i]).append(is_bare ? "" : quote);
  }
  return out;
}

std::string in_python_words(const OptionName& option) {
  return option.values.empty() ? option.name : option.name + "=" + joined(option.values, "\"");
}

std::string in_flag_words(const OptionName& option) {
  std::string flag = flag_of(option.name);
  if (option.values.empty() || option.values == std::vector<std::string>{"True"}) return flag;
  // `--shuffle` alone is a switch, so its value stands behind `=`.
  return flag + (option.name == "shuffle" ? "=" : " ") + joined(option.values, "");
}

// The option whose mark begins at `at`; moves `at` behind the mark.
OptionName take_option(std::string_view marked, std::size_t& at) {
  const std::size_t end = std::min(marked.find(kEnd, at), marked.size());
  std::string_view rest = marked.substr(at + 1, end - at - 1);
  at = std::min(end + 1, marked.size());
  const auto take = [&rest] {
    const std::size_t next = std::min(rest.find(kValue), rest.size());
    std::string word(rest.substr(0, next));
    rest.remove_prefix(std::min(next + 1, rest.size()));
    return word;
  };
  OptionName option{take(), {}};
  while (!rest.empty()) option.values.push_back(take());
  return option;
}

template <class Spell>
std::string spelled(std::string_view marked, Spell&& spell) {
  std::string out;
  for (std::size_t at = 0; at < marked.size();) {
    if (marked[at] != kBegin) {
      out += marked[at++];
      continue;
    }
    out += spell(take_option(marked, at));
  }
  return out;
}

}  // namespace

OptionName option(std::string_view name) {
  return {std::string(name), {}};
}

OptionName option(std::string_view name, std::string_view value) {
  return {std::string(name), {std::string(value)}};
}

OptionName option(std::string_view name, std::initializer_list<std::string_view> values) {
  return {std::string(name), {values.begin(), values.end()}};
}

std::string flag_of(std::string_view option) {
  if (option == "color") return "--image-color";
  std::string flag = "--" + std::string(option);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string TextMaker::mark(const OptionName& name) {
  std::string out = kBegin + one_line(name.name);
  for (const std::string& value : name.values) out += kValue + one_line(value);
  return out + kEnd;
}

Text::Text(const std::string& plain) : marked_(one_line(plain)) {}
Text::Text(const char* plain) : marked_(one_line(plain)) {}

std::string Text::in_python() const {
  return spelled(marked_, in_python_words);
}

std::string Text::in_flags(const std::function<bool(std::string_view)>& has_flag) const {
  return spelled(marked_, [&](const OptionName& option) {
    return has_flag(option.name) ? in_flag_words(option) : in_python_words(option);
  });
}

}  // namespace stoker
