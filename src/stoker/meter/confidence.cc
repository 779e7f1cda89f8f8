#include "stoker/meter/confidence.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace stoker::meter {

std::optional<double> half_width(std::span<const double> values) noexcept {
  // 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom
  static constexpr std::array<double, 30> kT = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                                2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                                2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  const std::size_t n = values.size();
  if (n < 4) return std::nullopt;
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(n);
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(n - 1));
  return kT[std::min<std::size_t>(n - 1, 30) - 1] * deviation / std::sqrt(static_cast<double>(n));
}

std::size_t block_steps(std::size_t steps, std::size_t queued, std::size_t workers) noexcept {
  std::size_t block = std::max<std::size_t>({1, queued, (steps + 29) / 30});
  if (workers > 1) block = (block + workers - 1) / workers * workers;
  return block;
}

}  // namespace stoker::meter
