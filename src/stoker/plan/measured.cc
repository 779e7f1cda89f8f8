#include "stoker/plan/measured.h"

#include <algorithm>
#include <cmath>

#include "stoker/meter/confidence.h"

namespace stoker::plan {
namespace {

// How much two runs of one configuration differ beyond what their blocks say, before any second run was seen: a share
// of the rate, and a share of the blocks' own variation, larger where that is large, since a crowded machine swings
// more slowly than a short run can see. `./dev bench whatif` prints how often the resulting interval holds.
constexpr double kBetweenRuns = 0.02, kOfBlocks = 0.5, kOfRestlessBlocks = 3;
double between_runs(double block_variation) {
  return std::hypot(kBetweenRuns, (kOfBlocks + std::min(1.0, kOfRestlessBlocks * block_variation)) * block_variation);
}
constexpr double kUnknownRun = 0.05;  // of a run that says nothing of its blocks
constexpr double kPriorRuns = 4;      // that weight in runs has what is assumed

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

Rate rate_of_blocks(std::span<const double> rates) {
  Rate rate{.per_s = mean_of(rates)};
  if (rates.size() < 4 || rate.per_s <= 0) return rate;
  const auto n = static_cast<double>(rates.size());
  double squares = 0, neighbours = 0;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    squares += std::pow(rates[i] - rate.per_s, 2);
    if (i > 0) neighbours += (rates[i] - rate.per_s) * (rates[i - 1] - rate.per_s);
  }
  const double deviation = std::sqrt(squares / (n - 1));
  const double alike = squares > 0 ? std::clamp(neighbours / squares, 0.0, 0.7) : 0;
  rate.block_variation = deviation / rate.per_s;
  rate.standard_error = deviation / std::sqrt(n) * std::sqrt((1 + alike) / (1 - alike));
  return rate;
}

Rate rate_of_interval(double per_s, std::optional<double> low, std::optional<double> high) {
  Rate rate{.per_s = per_s};
  if (!low || !high || *high < *low || per_s <= 0) return rate;
  rate.standard_error = (*high - *low) / 2 / 2.2;  // about ten blocks
  rate.block_variation = *rate.standard_error * std::sqrt(10.0) / per_s;
  return rate;
}

RateSpread spread_of(std::span<const Rate> rates) {
  const auto n = static_cast<double>(rates.size());
  RateSpread spread{.runs = rates.size(), .assumed = true};
  double logs = 0, within = 0, assumed = 0;
  for (const Rate& rate : rates) {
    logs += std::log(rate.per_s);
    const bool is_known = rate.standard_error && rate.block_variation;
    if (is_known) spread.assumed = false;
    within += is_known ? std::pow(*rate.standard_error / rate.per_s, 2) : std::pow(kUnknownRun, 2);
    assumed += std::pow(between_runs(rate.block_variation.value_or(0)), 2);
  }
  within /= n, assumed /= n;
  if (rates.size() > 1) spread.assumed = false;
  double between = kPriorRuns * assumed;
  for (const Rate& rate : rates) between += std::pow(std::log(rate.per_s) - logs / n, 2);
  between /= kPriorRuns + n - 1;
  const double width = meter::t90(kPriorRuns + n - 1) * std::sqrt(between * (1 + 1 / n) + within / n);
  spread.p50 = std::exp(logs / n);
  spread.p10 = spread.p50 * std::exp(-width);
  spread.p90 = spread.p50 * std::exp(width);
  return spread;
}

std::string text(const std::map<std::string, std::string>& knobs) {
  std::string out;
  for (const auto& [knob, value] : knobs) out += (out.empty() ? "" : " ") + knob + "=" + value;
  return out;
}

}  // namespace stoker::plan
