#include "stoker/tune/left_out.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/units.h"
#include "stoker/tune/measured.h"

namespace stoker::tune {
namespace {

std::size_t index_on(const Axis& axis, const Point& point) {
  const auto is_here = [&](const Point& setting) { return setting.at(axis.name) == point.at(axis.name); };
  return static_cast<std::size_t>(std::find_if(axis.settings.begin(), axis.settings.end(), is_here) -
                                  axis.settings.begin());
}

// Knobs that differ first, then how far apart their values lie.
std::pair<std::size_t, std::size_t> distance(const SearchSpace& space, const Point& a, const Point& b) {
  std::pair<std::size_t, std::size_t> apart{0, 0};
  for (const Axis& axis : space.axes()) {
    const std::size_t x = index_on(axis, a), y = index_on(axis, b);
    apart.first += x != y ? 1 : 0;
    apart.second += x > y ? x - y : y - x;
  }
  return apart;
}

// The share of a step that waits for data; none: not known.
std::optional<double> waits_of(const Row& row) {
  if (!row.data_ms || !row.step_ms || !(*row.step_ms > 0)) return std::nullopt;
  return *row.data_ms / *row.step_ms;
}

// Whether the point has more workers than the trial, and is else the same.
bool only_adds_workers(const SearchSpace& space, const Point& point, const Row& trial) {
  const std::optional<std::size_t> axis = space.axis("num_workers");
  if (!axis || distance(space, point, trial.knobs).first != 1) return false;
  return index_on(space.axes()[*axis], point) > index_on(space.axes()[*axis], trial.knobs);
}

}  // namespace

std::string why_left_out(const SearchSpace& space, const Point& point) {
  const Row *nearest = nullptr, *fastest = nullptr;
  std::pair<std::size_t, std::size_t> least{std::numeric_limits<std::size_t>::max(), 0};
  for (const Point& other : space.points()) {
    for (const Row& row : space.rows_of(other)) {
      if (!row.ok()) continue;
      if (fastest == nullptr || *row.images_per_s > *fastest->images_per_s) fastest = &row;
      const auto apart = distance(space, point, other);
      if (apart < least) least = apart, nearest = &row;
    }
  }
  if (nearest == nullptr) return "nothing else ran, so nothing could be concluded";
  const std::string trial = fmt::format("trial {} ({}, {} samples/s)", nearest->trial, text(nearest->knobs),
                                        format_rate(*nearest->images_per_s));
  const std::optional<double> waits = waits_of(*nearest);
  if (waits && *waits < kFed && only_adds_workers(space, point, *nearest))
    return fmt::format("more workers cannot help: the step of {} waits for data only {:.1f} % of its time", trial,
                       100 * *waits);
  if (nearest == fastest)
    return fmt::format("no gain expected, concluded from {}, the nearest that ran and the fastest", trial);
  return fmt::format("no gain expected, concluded from {}, the nearest that ran; trial {} has {} samples/s", trial,
                     fastest->trial, format_rate(*fastest->images_per_s));
}

}  // namespace stoker::tune
