// The rate that a point is likely to have, by its own runs and by those of points that must be much alike: where the
// step does not wait for data, more workers change nothing, and the time of a step is about a line over the batch size.
// The highest of many rates was lucky; this takes the luck out. Pure; from any thread.
#pragma once

#include <span>
#include <vector>

#include "stoker/tune/row.h"

namespace stoker::tune {

// The ok runs of one point: one at least.
struct Sampled {
  const Point* point = nullptr;
  std::vector<const Row*> runs = {};
};

struct Spread {
  double of_runs = 0;  // one standard deviation of the logarithm of a rate, from run to run of one point
  double degrees = 0;  // of freedom
};

// By repeats, pooled over all points, but not less than what the trials say of themselves; a guess where there are few.
Spread spread_of(std::span<const Sampled> points);

struct Expected {
  double log_rate = 0;
  double error = 0;  // one standard deviation
};

// One for each point, in their order.
std::vector<Expected> expected(std::span<const Sampled> points, double spread_of_runs);

}  // namespace stoker::tune
