#include "stoker/tune/measured.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace stoker::tune {
namespace {

bool has_interval(const Row& row) {
  return row.ci_low && row.ci_high && *row.ci_high >= *row.ci_low;
}

double half_width_of(const Row& row, double noise) {
  // The longer side: one that would lie below 0 is cut off.
  if (has_interval(row)) return std::max(*row.ci_high - *row.images_per_s, *row.images_per_s - *row.ci_low);
  return noise * *row.images_per_s;
}

// What the runs of one point say of each other; two alone: that either may be right.
double half_width_of_repeats(std::span<const double> rates) {
  if (rates.size() < 2) return 0;
  const auto [slowest, fastest] = std::minmax_element(rates.begin(), rates.end());
  if (rates.size() == 2) return (*fastest - *slowest) / 2;
  double mean = 0, squares = 0;
  const auto n = static_cast<double>(rates.size());
  for (const double rate : rates) mean += rate / n;
  for (const double rate : rates) squares += (rate - mean) * (rate - mean);
  constexpr double kDeviationsOfFew = 2.5;  // of a mean of few, 95 %
  return kDeviationsOfFew * std::sqrt(squares / (n - 1) / n);
}

}  // namespace

double typical_rate(std::span<const double> rates) {
  std::vector<double> sorted(rates.begin(), rates.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  const double median = sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  double sum = 0, count = 0;
  for (const double rate : sorted) {
    if (std::abs(std::log(rate / median)) <= kFarOff) sum += rate, ++count;
  }
  return count > 0 ? sum / count : median;
}

double noise_of(std::span<const Measured> all) noexcept {
  constexpr double kTelling = 0.1;
  double most = 0;
  for (const Measured& one : all) most = std::max(most, one.differs);
  return most >= kTelling ? most : 0;
}

std::vector<Measured> measured(std::span<const Row> rows, double noise) {
  std::map<Point, std::size_t> numbers;
  std::vector<Measured> all;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto [at, is_new] = numbers.emplace(rows[i].knobs, all.size());
    if (is_new) all.push_back({.point = &rows[i].knobs});
    Measured& one = all[at->second];
    one.last = rows[i].status;
    if (rows[i].ok()) {
      one.ok.push_back(i);
    } else if (rows[i].status != Status::user_error) {  // which may have been mended since
      one.has_failed = true;
    }
  }
  for (Measured& one : all) {
    if (one.ok.empty()) continue;
    double squares = 0;
    std::vector<double> rates;
    for (const std::size_t i : one.ok) {
      rates.push_back(*rows[i].images_per_s);
      one.has_interval = one.has_interval && has_interval(rows[i]);
      squares += std::pow(half_width_of(rows[i], noise), 2);
      if (rows[i].host_peak_bytes)
        one.host_bytes = std::max(one.host_bytes.value_or(0), static_cast<double>(*rows[i].host_peak_bytes));
    }
    one.rate = typical_rate(rates);
    const auto [slowest, fastest] = std::minmax_element(rates.begin(), rates.end());
    if (*slowest > 0) one.differs = *fastest / *slowest - 1;
    one.half_width = std::max(std::sqrt(squares) / static_cast<double>(one.ok.size()), half_width_of_repeats(rates));
    if (rates.size() > 1) one.has_interval = true;
    one.row = *std::min_element(one.ok.begin(), one.ok.end(), [&](std::size_t a, std::size_t b) {
      return std::abs(*rows[a].images_per_s - one.rate) < std::abs(*rows[b].images_per_s - one.rate);
    });
  }
  return all;
}

}  // namespace stoker::tune
