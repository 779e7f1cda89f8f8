#include "stoker/tune/expected.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "stoker/tune/knobs.h"
#include "stoker/tune/measured.h"

namespace stoker::tune {
namespace {

constexpr double kPriorNoise = 0.02;     // of a rate, until repeats tell; counts like
constexpr double kPriorDegrees = 3;      // worth this number of repeats
constexpr double kDeviations = 2.8;      // in half an interval of 95 % from the few blocks of a trial
constexpr double kAcrossWorkers = 0.01;  // workers that only wait still take something from the step
constexpr double kOffLine = 0.02;        // a size that suits the kernels, or does not

// Several figures of one thing, each with its variance.
class Mean {
 public:
  void add(double value, double variance) {
    weight_ += 1 / variance;
    sum_ += value / variance;
  }
  double value() const { return sum_ / weight_; }
  double variance() const { return 1 / weight_; }

 private:
  double weight_ = 0, sum_ = 0;
};

double log_rate_of(const Sampled& point) {
  std::vector<double> rates;
  for (const Row* run : point.runs) rates.push_back(*run->images_per_s);
  return std::log(typical_rate(rates));
}

bool is_fed(const Sampled& point) {
  double waits = 0;
  for (const Row* run : point.runs) {
    if (!run->data_ms || !run->step_ms || !(*run->step_ms > 0)) return false;  // not known
    waits += *run->data_ms / *run->step_ms / static_cast<double>(point.runs.size());
  }
  return waits < kFed;
}

Point without_size_and_workers(const Point& point) {
  Point rest = point;
  std::erase_if(rest, [](const auto& knob) {
    const std::string_view role = role_of(knob.first);
    return role == "batch_size" || role == "accumulate_steps" || role == "num_workers";
  });
  return rest;
}

using Sizes = std::map<double, Mean>;  // logarithm of the rate at each batch size, whatever the workers

// Adds what the other sizes say of this one, by a line through the times of their steps.
void add_line(const Sizes& sizes, double size, double variance_off_line, Mean& mean) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [other, rate] : sizes) {
    if (other == size || other <= 0) continue;
    const double seconds = other / std::exp(rate.value());
    const double weight = 1 / (seconds * seconds * (rate.variance() + variance_off_line));
    n += weight, x += weight * other, y += weight * seconds, xx += weight * other * other,
        xy += weight * other * seconds;
  }
  const double determinant = n * xx - x * x;
  if (!(determinant > 1e-9 * n * xx)) return;  // fewer than two
  const double at = x / n, seconds_at = y / n;
  // Neither gets a step faster with its size, nor an image slower.
  const double slope = std::clamp((n * xy - x * y) / determinant, 0.0, seconds_at / at);
  const double seconds = seconds_at + slope * (size - at);
  if (!(seconds > 0)) return;
  const double error = 1 / n + n / determinant * (size - at) * (size - at);
  mean.add(std::log(size / seconds), error / (seconds * seconds) + variance_off_line + kAcrossWorkers * kAcrossWorkers);
}

}  // namespace

RunSpread spread_of(std::span<const Sampled> points) {
  double squares = kPriorNoise * kPriorNoise * kPriorDegrees, degrees = kPriorDegrees, own_squares = 0, own_count = 0;
  for (const Sampled& point : points) {
    const double typical = log_rate_of(point);
    for (const Row* run : point.runs) {
      const double off = std::log(*run->images_per_s) - typical;
      if (std::abs(off) <= kFarOff || point.runs.size() < 3) squares += off * off;
      if (!run->ci_low || !run->ci_high) continue;
      own_squares += std::pow((*run->ci_high - *run->ci_low) / 2 / kDeviations / *run->images_per_s, 2);
      ++own_count;
    }
    degrees += static_cast<double>(point.runs.size() - 1);
  }
  return {std::sqrt(std::max(squares / degrees, own_count > 0 ? own_squares / own_count : 0)), degrees};
}

std::vector<Expected> expected(std::span<const Sampled> points, double spread_of_runs) {
  struct Here {
    double size = 0, log_rate = 0, variance = 0;
    bool is_fed = false;
    Point rest;
  };
  std::vector<Here> all;
  std::map<Point, Sizes> lines;
  for (const Sampled& point : points) {
    Here here{.size = number_of(*point.point, "batch_size").value_or(0),
              .log_rate = log_rate_of(point),
              .variance = spread_of_runs * spread_of_runs / static_cast<double>(point.runs.size()),
              .is_fed = is_fed(point),
              .rest = {}};
    if (here.is_fed) {
      here.rest = without_size_and_workers(*point.point);
      lines[here.rest][here.size].add(here.log_rate, here.variance + kAcrossWorkers * kAcrossWorkers);
    }
    all.push_back(std::move(here));
  }
  std::vector<Expected> result;
  for (const Here& here : all) {
    Mean mean;
    mean.add(here.log_rate, here.variance);
    if (here.is_fed) {
      for (const Here& other : all) {
        if (&other == &here || !other.is_fed || other.size != here.size || other.rest != here.rest) continue;
        mean.add(other.log_rate, other.variance + 2 * kAcrossWorkers * kAcrossWorkers);
      }
      if (here.size > 0) add_line(lines[here.rest], here.size, kOffLine * kOffLine, mean);
    }
    result.push_back({mean.value(), std::sqrt(mean.variance())});
  }
  return result;
}

}  // namespace stoker::tune
