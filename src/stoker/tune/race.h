// The last part of a search: repeated runs decide which point is the fastest. Pure; from any thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "stoker/tune/expected.h"
#include "stoker/tune/search.h"

namespace stoker::tune {

struct Racer {
  const Point* point = nullptr;
  std::span<const Row> rows = {};  // all ok, one at least
};

// Whether two runs of a point differ so much that a third must decide.
bool contradict(std::span<const Row> rows);

// The next run; none: the race is decided. Re-run the leader until it stays leader. Then re-run each plausible
// challenger, in turn with the leader, until none can beat it by more than the tolerance.
std::optional<Ask> next_of_race(std::span<const Racer> field, double tolerance);

// A second run of the fastest point, if it ran only once.
std::optional<Ask> unproven(std::span<const Racer> field);

struct Leader {
  const Point* point = nullptr;
  double log_rate = 0;  // expected
};
std::optional<Leader> leader_of(std::span<const Racer> field);

RunSpread spread_of(std::span<const Racer> field);

}  // namespace stoker::tune
