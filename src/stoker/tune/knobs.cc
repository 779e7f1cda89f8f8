#include "stoker/tune/knobs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"

namespace stoker::tune {
namespace {

constexpr std::uint64_t kMostPoints = 1'000'000;

bool is_name(std::string_view text) noexcept {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (text.empty() || !is_letter(text.front())) return false;
  const bool is_of_source = text.find(".py:") != std::string_view::npos;  // a literal of a Python file
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-' || (is_of_source && (c == ':' || c == '/'));
  });
}

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// "32" and "32.0" are one value, "1" and "true" are two.
bool is_same_value(std::string_view a, std::string_view b) noexcept {
  if (a == b) return true;
  const auto is_numeral = [](std::string_view word) {
    return word.find_first_of("0123456789") != std::string_view::npos;
  };
  const std::optional<double> x = number_of(a), y = number_of(b);
  return x && y && *x == *y && is_numeral(a) == is_numeral(b);
}

}  // namespace

void Grid::add(std::string_view text) {
  constexpr const char* kHint = "write it like batch_size=32,64,128";
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    throw Error(ErrorKind::usage,
                fmt::format("cannot add `{}` to the grid: no `=` between a knob and its values", text), kHint);
  }
  Knob knob{.name = std::string(trimmed(text.substr(0, equals))), .values = {}};
  if (!is_name(knob.name)) {
    throw Error(ErrorKind::usage,
                fmt::format("cannot add `{}` to the grid: `{}` is not a knob's name", text, knob.name), kHint);
  }
  if (find(knob.name) != nullptr) {
    throw Error(ErrorKind::usage,
                fmt::format("cannot add `{}` to the grid: the knob `{}` is already in it", text, knob.name),
                "give all values of a knob at once, separated by commas");
  }
  std::string_view rest = text.substr(equals + 1);
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    more = comma != std::string_view::npos;
    const std::string_view value = trimmed(rest.substr(0, comma));
    if (more) rest.remove_prefix(comma + 1);
    if (value.empty()) {
      throw Error(ErrorKind::usage,
                  fmt::format("cannot add `{}` to the grid: a value of `{}` is empty", text, knob.name), kHint);
    }
    const auto twin =
        std::find_if(knob.values.begin(), knob.values.end(), [&](const auto& v) { return is_same_value(v, value); });
    if (twin != knob.values.end()) {
      throw Error(ErrorKind::usage,
                  fmt::format("cannot add `{}` to the grid: `{}` and `{}` are the same value of `{}`", text, *twin,
                              value, knob.name),
                  "name each value once");
    }
    knob.values.emplace_back(value);
  }
  if (std::max<std::uint64_t>(size(), 1) > kMostPoints / knob.values.size()) {
    throw Error(ErrorKind::usage,
                fmt::format("cannot add `{}` to the grid: it would have more than {} points", text, kMostPoints),
                "give fewer knobs or fewer values");
  }
  knobs_.push_back(std::move(knob));
}

const Knob* Grid::find(std::string_view name) const noexcept {
  const auto found = std::find_if(knobs_.begin(), knobs_.end(), [&](const Knob& knob) { return knob.name == name; });
  return found == knobs_.end() ? nullptr : &*found;
}

std::uint64_t Grid::size() const noexcept {
  if (knobs_.empty()) return 0;
  std::uint64_t size = 1;
  for (const Knob& knob : knobs_) size *= knob.values.size();
  return size;
}

Point Grid::point(std::uint64_t number) const {
  Point point;
  for (std::size_t i = knobs_.size(); i-- > 0;) {
    const Knob& knob = knobs_[i];
    point[knob.name] = knob.values[number % knob.values.size()];
    number /= knob.values.size();
  }
  return point;
}

std::vector<Point> Grid::points() const {
  std::vector<Point> points;
  points.reserve(size());
  for (std::uint64_t number = 0; number < size(); ++number) points.push_back(point(number));
  return points;
}

std::optional<double> number_of(std::string_view word) noexcept {
  if (word == "true" || word == "True") return 1;
  if (word == "false" || word == "False") return 0;
  double number = 0;
  const char* const end = word.data() + word.size();
  const auto [after, code] = std::from_chars(word.data(), end, number);
  if (code != std::errc{} || after != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::string_view role_of(std::string_view name) noexcept {
  struct Word {
    std::string_view word, role;
  };
  constexpr Word kWords[] = {
      {"workers", "num_workers"},
      {"n_workers", "num_workers"},
      {"nworkers", "num_workers"},
      {"num_worker", "num_workers"},
      {"dataloader_num_workers", "num_workers"},
      {"workers_per_gpu", "num_workers"},
      {"batch", "batch_size"},
      {"batchsize", "batch_size"},
      {"bs", "batch_size"},
      {"per_device_train_batch_size", "batch_size"},
      {"train_batch_size", "batch_size"},
      {"prefetch", "prefetch_factor"},
      {"dataloader_prefetch_factor", "prefetch_factor"},
      {"pin", "pin_memory"},
      {"dataloader_pin_memory", "pin_memory"},
      {"gradient_accumulation_steps", "accumulate_steps"},
      {"accumulate_grad_batches", "accumulate_steps"},
      {"accumulation_steps", "accumulate_steps"},
  };
  const std::size_t dot = name.rfind('.');
  if (dot != std::string_view::npos) name.remove_prefix(dot + 1);
  for (const Word& one : kWords) {
    if (one.word == name) return one.role;
  }
  return name;
}

const std::string* find_role(const Point& point, std::string_view knob) noexcept {
  if (const auto found = point.find(knob); found != point.end()) return &found->second;
  for (const auto& [name, word] : point) {
    if (role_of(name) == knob) return &word;
  }
  return nullptr;
}

std::optional<double> number_of(const Point& point, std::string_view knob) noexcept {
  const std::string* const word = find_role(point, knob);
  return word == nullptr ? std::nullopt : number_of(*word);
}

std::string text(const Point& point) {
  std::string text;
  for (const auto& [knob, word] : point) text += fmt::format("{}{}={}", text.empty() ? "" : " ", knob, word);
  return text;
}

}  // namespace stoker::tune
