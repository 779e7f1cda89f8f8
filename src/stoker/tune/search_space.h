// The points that a search may try, what is known of them, and which of them must not be tried any more: memory that
// ran out rules out larger batches at equal settings, and lines fitted to what trials used rule out those that would
// pass a limit. Faults rule out nothing but themselves. Single-threaded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stoker/tune/search.h"

namespace stoker::tune {

// One direction to search in: a knob with its values in ascending order where they are numbers. With a fixed effective
// batch, accumulate_steps goes along with batch_size.
struct Axis {
  std::string name;
  std::vector<Point> settings;
  std::vector<std::optional<double>> numbers;
};

using Place = std::vector<std::size_t>;  // an index on each axis

class SearchSpace {
 public:
  explicit SearchSpace(
      const SearchOptions& options);  // throws Error(usage): an empty grid, nothing fits the constraint

  const std::vector<Axis>& axes() const noexcept { return axes_; }
  std::optional<std::size_t> axis(std::string_view name) const noexcept;
  const std::vector<Point>& points() const noexcept { return points_; }  // in the order of the grid
  Point point(const Place& place) const;

  void add(const Row& row);  // rows of points outside the grid are kept out
  const std::vector<Row>& rows_of(const Point& point) const;
  bool has_user_error() const noexcept { return user_errors_.end_the_search(); }

  // Why the point must not be tried: a row with status pruned or skipped_memory. None: it may.
  std::optional<Row> excluded(const Point& point) const;

 private:
  std::optional<std::string> pruned_by(const Point& point) const;
  std::optional<std::string> beyond_memory(const Point& point) const;

  SearchOptions options_;
  std::vector<Axis> axes_;
  std::vector<Point> points_;
  std::map<Point, std::vector<Row>> rows_;
  std::vector<Row> out_of_memory_;
  UserErrors user_errors_;
};

}  // namespace stoker::tune
