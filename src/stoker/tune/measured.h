// What the rows of one point say together: repeated trials are one measurement. Pure; from any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "stoker/tune/row.h"

namespace stoker::tune {

// All rows of one point. The figures are those of its ok rows; 0 where it has none.
struct Measured {
  const Point* point = nullptr;  // of the first of its rows
  std::vector<std::size_t> ok = {};
  bool has_failed = false;
  bool has_interval = true;  // every ok row has one; else the half width is a guess
  Status last = Status::ok;
  double rate = 0, half_width = 0;  // typical_rate(), and half of its 95 % interval
  std::size_t row = 0;              // the one nearest to it: stands for the point
  double differs = 0;               // its fastest run is so much faster than its slowest: 0.1 is a tenth
  std::optional<double> host_bytes = {};
};

// A machine that did something else during one run, or lent it what it lends nobody twice, says nothing about the
// point: the mean of the rates that lie within a tenth of their median. Needs one at least.
double typical_rate(std::span<const double> rates);
inline constexpr double kFarOff = 0.25;  // not near: as a difference of logarithms

inline constexpr double kFed = 0.02;  // a step that waits for a smaller share of its time is not short of data

// The largest `differs` of all points, where it is so large that longer trials would tell more; 0: it is not.
double noise_of(std::span<const Measured> all) noexcept;

// In the order in which the points first appear. Borrows from `rows`. A row without interval is taken to be uncertain
// by the share `noise`.
std::vector<Measured> measured(std::span<const Row> rows, double noise = 0.02);

}  // namespace stoker::tune
