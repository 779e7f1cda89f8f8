#include "stoker/meter/confidence.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace stoker::meter {
namespace {

constexpr std::array<double, 10> kT90 = {3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383, 1.372};
constexpr std::array<double, 10> kT95 = {6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812};
constexpr std::array<double, 30> kT975 = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                          2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                          2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};

// From the table; beyond it the normal distribution's quantile, and `slope` over the degrees.
template <std::size_t N>
double quantile(const std::array<double, N>& table, double normal, double slope, double degrees) noexcept {
  const auto whole = static_cast<std::size_t>(std::max(1.0, degrees));
  return whole <= N ? table[whole - 1] : normal + slope / degrees;
}

}  // namespace

double t90(double degrees) noexcept {
  return quantile(kT90, 1.2816, 0.9, degrees);
}

double t95(double degrees) noexcept {
  return quantile(kT95, 1.645, 1.7, degrees);
}

double t975(double degrees) noexcept {
  return quantile(kT975, 1.960, 2.5, degrees);
}

std::optional<double> half_width(std::span<const double> values) noexcept {
  const std::size_t n = values.size();
  if (n < 4) return std::nullopt;
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(n);
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(n - 1));
  return t975(static_cast<double>(n - 1)) * deviation / std::sqrt(static_cast<double>(n));
}

std::size_t block_steps(std::size_t steps, std::size_t queued, std::size_t workers) noexcept {
  std::size_t block = std::max<std::size_t>({1, queued, (steps + 29) / 30});
  if (workers > 1) block = (block + workers - 1) / workers * workers;
  return block;
}

}  // namespace stoker::meter
