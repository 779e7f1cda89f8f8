// Values of options: read from words, checked against their row of the table, and shown.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/units.h"
#include "stoker/loader/option_limits.h"
#include "stoker/loader/option_table.h"

namespace stoker::loader {
namespace {

constexpr double kLongestWait_s = 1e9;

// The refused value, such that its type can be seen where its digits would do: "the text `4`", `4.0`, `True`.
std::string refused_text(const Option& row, const Value& value) {
  const bool wants_number = row.type == ValueType::count || row.type == ValueType::real;
  if (!wants_number) return fmt::format("`{}`", value_text(value));
  if (const auto* const text = std::get_if<std::string>(&value)) {
    const bool has_digits = !text->empty() && text->find_first_not_of("0123456789") == std::string::npos;
    return fmt::format("{}`{}`", has_digits ? "the text " : "", *text);
  }
  const auto* const real = std::get_if<double>(&value);
  if (row.type == ValueType::count && real != nullptr && *real >= 0 && *real == std::floor(*real)) {
    return fmt::format("`{:.1f}`", *real);
  }
  if (const auto* const on = std::get_if<bool>(&value)) return *on ? "`True`" : "`False`";
  return fmt::format("`{}`", value_text(value));
}

[[noreturn]] void refuse_value(const Option& row, const Value& value) {
  Text hint;
  if (const auto* const text = std::get_if<std::string>(&value); text != nullptr && !row.words.empty()) {
    const std::string near = nearest(*text, row.words.data(), row.words.size());
    if (!near.empty()) hint = fmt::format("did you mean `{}`?", near);
  }
  if (row.name == "max_errors") hint = format_text("{} allows none", option("on_error", "raise"));
  throw Error(ErrorKind::usage,
              format_text("{} is {}, not {}", option(row.name), values_text(row), refused_text(row, value)), hint)
      .about(row.name);
}

// A text as the unit's parser reads it, with the option named in what it refuses.
template <class Parse>
auto parse_for(const Option& row, const std::string& text, Parse&& parse) {
  try {
    return parse(text);
  } catch (const Error& error) {
    throw Error(ErrorKind::usage, format_text("{}: {}", option(row.name), error.text()), error.hint_text())
        .about(row.name);
  }
}

// The value in the one form that Option::set takes; nothing: it is not one of the option's.
std::optional<Value> settled(const Option& row, const Value& value) {
  const auto* const text = std::get_if<std::string>(&value);
  const auto* const number = std::get_if<std::uint64_t>(&value);
  if (row.takes_auto && value == Value("auto")) return value;
  const auto in_range = [&](std::uint64_t n) -> std::optional<Value> {
    return n >= row.least && n <= row.most ? std::optional<Value>(n) : std::nullopt;
  };
  switch (row.type) {
    case ValueType::count:
      return number != nullptr ? in_range(*number) : std::nullopt;
    case ValueType::bytes:
      if (text != nullptr) return in_range(parse_for(row, *text, parse_bytes));
      return number != nullptr ? in_range(*number) : std::nullopt;
    case ValueType::duration: {
      double seconds = -1;
      if (text != nullptr) seconds = std::chrono::duration<double>(parse_for(row, *text, parse_duration)).count();
      if (number != nullptr) seconds = static_cast<double>(*number);
      if (const auto* const real = std::get_if<double>(&value)) seconds = *real;
      return seconds >= 0 && seconds < kLongestWait_s ? std::optional<Value>(seconds) : std::nullopt;
    }
    case ValueType::real: {
      double real = 0;
      if (number != nullptr) real = static_cast<double>(*number);
      if (const auto* const given = std::get_if<double>(&value)) real = *given;
      const bool is_known = real > 0 && std::isfinite(real) && (real <= 1 || real == std::floor(real));
      return is_known ? std::optional<Value>(real) : std::nullopt;
    }
    case ValueType::word: {
      const bool is_known = text != nullptr && std::find(row.words.begin(), row.words.end(), *text) != row.words.end();
      return is_known ? std::optional<Value>(value) : std::nullopt;
    }
    case ValueType::on_off:
      return std::holds_alternative<bool>(value) ? std::optional<Value>(value) : std::nullopt;
    case ValueType::shuffle:
      if (const auto* const on = std::get_if<bool>(&value)) return Value(*on ? "full" : "off");
      return text != nullptr ? std::optional<Value>(value) : std::nullopt;
    case ValueType::text:
      return text != nullptr ? std::optional<Value>(value) : std::nullopt;
    case ValueType::names: {
      const auto* const names = std::get_if<Names>(&value);
      return text != nullptr || (names != nullptr && !names->empty()) ? std::optional<Value>(value) : std::nullopt;
    }
  }
  return std::nullopt;
}

void check_last_batch(const std::vector<Given>& given) {
  const auto value_of = [&](std::string_view name) {
    const auto found = std::find_if(given.begin(), given.end(), [&](const Given& one) { return one.name == name; });
    return found == given.end() ? Value() : found->value;
  };
  const Value last = value_of("last_batch");
  if (value_of("drop_last") != Value(true) || last == Value() || last == Value("drop")) return;
  throw Error(ErrorKind::usage,
              format_text("{} and {} contradict each other", option("drop_last", "True"),
                          option("last_batch", value_text(last))),
              "give one of the two")
      .about("last_batch");
}

void check_rank(const LoaderOptions& options) {
  if (options.rank < options.world_size) return;
  throw Error(ErrorKind::usage, format_text("{} is from 0 to {} - 1 ({}), not {}", option("rank"), option("world_size"),
                                            options.world_size - 1, options.rank))
      .about("rank");
}

}  // namespace

Value read_value(const Option& row, std::string_view word) {
  const auto as_number = [&]<class Number>(Number number) -> Value {
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), number);
    return code == std::errc{} && end == word.data() + word.size() ? Value(number) : Value(std::string(word));
  };
  const auto is_one_of = [&](std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  switch (row.type) {
    case ValueType::count:
      return as_number(std::uint64_t{});
    case ValueType::real:
      return as_number(double{});
    case ValueType::on_off:
    case ValueType::shuffle:
      if (is_one_of({"", "true", "True", "yes"})) return true;
      if (is_one_of({"false", "False", "no"})) return false;
      return Value(std::string(word));
    case ValueType::bytes:
    case ValueType::duration:
    case ValueType::word:
    case ValueType::text:
    case ValueType::names:
      break;
  }
  return Value(std::string(word));
}

void set_option(Request& request, const Option& row, const Value& value) {
  if (row.takes_none && std::holds_alternative<std::monostate>(value)) return;
  const std::optional<Value> right = settled(row, value);
  if (!right) refuse_value(row, value);
  try {
    row.set(request, *right);
  } catch (const Error& error) {
    throw error.about(row.name);
  }
}

void check_value(const Option& row, std::string_view word) {
  Request request;
  set_option(request, row, read_value(row, word));
}

void check_options(const LoaderOptions& options) {
  const Request request{.loader = options, .opening = {}};
  for (const Option& row : option_table()) {
    const Value value = row.get(request);
    if (row.takes_none && std::holds_alternative<std::monostate>(value)) continue;
    if (!settled(row, value)) refuse_value(row, value);
  }
  check_rank(options);
}

Request make_request(const std::vector<Given>& given) {
  Request request;
  for (const Given& one : given) set_option(request, find_option(one.name), one.value);
  check_last_batch(given);
  check_rank(request.loader);
  request.opening.memory_limit =
      request.loader.memory_limit != 0 ? request.loader.memory_limit : default_memory_limit();
  return request;
}

std::string values_text(const Option& row) {
  const std::string_view automatic = row.takes_auto ? "auto or " : "";
  switch (row.type) {
    case ValueType::count:
      if (row.most == kMostSeed) return fmt::format("{}a whole number from {} to 2**64 - 1", automatic, row.least);
      if (row.most >= kMostSamples) return fmt::format("{}a whole number from {}", automatic, row.least);
      return fmt::format("{}a whole number from {} to {}", automatic, row.least, format_count(row.most));
    case ValueType::bytes:
      return fmt::format("{}a number of bytes or a size such as 4GB", row.takes_auto ? "auto, " : "");
    case ValueType::duration:
      return "a number of seconds or a time such as 5m";
    case ValueType::real:
      return "a count from 1 or a share below 1";
    case ValueType::word:
      return fmt::format("one of {}", fmt::join(row.words, ", "));
    case ValueType::on_off:
      return "on or off";
    case ValueType::shuffle:
      return "off, full, blocks, blocks:NEIGHBOURS:MIXED, nodes or nodes:COUNT";
    case ValueType::text:
      return "a text";
    case ValueType::names:
      return "a list of names or a file with one on each line";
  }
  return "";
}

std::string default_text(const Option& row) {
  return row.unset.empty() ? value_text(row.get(Request{})) : std::string(row.unset);
}

std::string value_text(const Value& value) {
  struct Words {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool on) const { return on ? "yes" : "no"; }
    std::string operator()(std::uint64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(const Names& names) const {
      return names.empty() ? "[]" : fmt::format("['{}']", fmt::join(names, "', '"));
    }
    std::string operator()(const Unknown& other) const { return other.text; }
  };
  return std::visit(Words{}, value);
}

}  // namespace stoker::loader
