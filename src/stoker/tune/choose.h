// From rows to a choice: the best, the cheapest that is as good, the knee. Pure; from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/tune/row.h"

namespace stoker::tune {

// Kneedle (Satopaa et al. 2011, S = 1, increasing and concave): the index of the knee, or none. `x` ascending; fewer
// than three points have none.
std::optional<std::size_t> knee(std::span<const double> x, std::span<const double> y);

struct Choice {
  std::size_t points = 0, ok = 0;          // different points; repeated ones count once
  std::optional<std::size_t> best = {};    // index of the row with the highest rate
  std::optional<std::size_t> chosen = {};  // the cheapest within `tolerance` of the best
  std::string reason = {};                 // one sentence
  double noise = 0;  // runs of one point differ by up to this share; 0: the runs agree well enough to choose
  std::map<Status, std::size_t> failures = {};
  // The knee of the rate over num_workers at the chosen batch size and the other chosen knobs; in workers.
  std::optional<double> knee = {};
};

// Several rows of one point are one measurement: their typical rate, and the row nearest to it stands for the point. A
// point that also failed is chosen only if nothing else ran. Cheaper means clearly less host memory where it is known
// of all, then fewer workers, a smaller batch, less prefetch; among equals the faster one. `noise` is the assumed
// uncertainty of a rate without an interval.
Choice choose(std::span<const Row> rows, double tolerance = 0.02, double noise = 0.02);

}  // namespace stoker::tune
