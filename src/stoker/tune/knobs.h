// What is tuned: named knobs with the values to try, and one choice of them. Values are kept as the words that people
// wrote, and compared as numbers where they are numbers. Immutable values; from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::tune {

// One configuration: knob -> word, such as batch_size -> "32", pin_memory -> "true".
using Point = std::map<std::string, std::string, std::less<>>;

struct Knob {
  std::string name;
  std::vector<std::string> values;  // in the order given; at least one, none twice
};

class Grid {
 public:
  // "batch_size=32,64,128"; a knob given twice, no value or one twice, and more than a million points are refused.
  // Throws Error(usage).
  void add(std::string_view text);

  const std::vector<Knob>& knobs() const noexcept { return knobs_; }
  const Knob* find(std::string_view name) const noexcept;
  std::uint64_t size() const noexcept;      // points; 0 without knobs
  Point point(std::uint64_t number) const;  // the last knob changes fastest
  std::vector<Point> points() const;

 private:
  std::vector<Knob> knobs_;
};

std::optional<double> number_of(std::string_view word) noexcept;  // 32, 1e-3, true is 1, false is 0
// What a knob is by its name: "num_workers" for training.workers or loader.n_workers, "batch_size" for train.batch;
// else the name itself. So that knobs which live in files or commands of others are searched as what they are.
std::string_view role_of(std::string_view name) noexcept;
// Of that name, or else of the first knob in that role.
std::optional<double> number_of(const Point& point, std::string_view knob) noexcept;
const std::string* find_role(const Point& point, std::string_view knob) noexcept;  // its word; null: there is none
std::string text(const Point& point);                                              // "batch_size=32 num_workers=8"

}  // namespace stoker::tune
