// The expected rate of a point, from its own runs and from those of similar points. Where the step does not wait for
// data, more workers change nothing, and the time of a step is nearly linear in the batch size. This corrects for the
// luck of the highest among many rates. Pure; from any thread.
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

struct RunSpread {
  double of_runs = 0;  // one standard deviation of the logarithm of a rate, from run to run of one point
  double degrees = 0;  // of freedom
};

// Pooled over the repeats of all points, at least as large as the trials' own intervals; a prior where repeats are few.
RunSpread spread_of(std::span<const Sampled> points);

struct Expected {
  double log_rate = 0;
  double error = 0;  // one standard deviation
};

// One for each point, in their order.
std::vector<Expected> expected(std::span<const Sampled> points, double spread_of_runs);

}  // namespace stoker::tune
