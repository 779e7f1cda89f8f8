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
  double differs = 0;               // how much faster its fastest run is than its slowest: 0.1 is 10 %
  std::optional<double> host_bytes = {};
};

// Outliers are dropped: the mean of the rates within kFarOff (log scale) of the median. Needs one rate at least.
double typical_rate(std::span<const double> rates);
inline constexpr double kFarOff = 0.25;  // difference of logarithms

inline constexpr double kFed = 0.02;  // a step that waits for a smaller share of its time is not short of data

// The largest `differs` of all points, if longer trials would tell more; else 0.
double noise_of(std::span<const Measured> all) noexcept;

// In the order in which the points first appear. Borrows from `rows`. A row without interval is taken to be uncertain
// by the share `noise`.
std::vector<Measured> measured(std::span<const Row> rows, double noise = 0.02);

}  // namespace stoker::tune
