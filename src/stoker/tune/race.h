// The last part of a search: which of those that ran is the fastest, run by run. Pure; from any thread.
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

// Two runs so far apart that one was chance: a third tells which.
bool contradict(std::span<const Row> rows);

// The run that tells most, or none where nothing is left to tell. First the fastest once more, and whatever is the
// fastest then, until one has held its place; then the first against whoever may still be ahead of it, in turn, until
// nobody may be by more than is worth it.
std::optional<Ask> next_of_race(std::span<const Racer> field, double tolerance);

// The fastest by all runs, where it ran once only.
std::optional<Ask> unproven(std::span<const Racer> field);

struct Leader {
  const Point* point = nullptr;
  double log_rate = 0;  // expected
};
std::optional<Leader> leader_of(std::span<const Racer> field);

Spread spread_of(std::span<const Racer> field);

}  // namespace stoker::tune
