#include "stoker/tune/choose.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "stoker/base/units.h"
#include "stoker/tune/expected.h"
#include "stoker/tune/measured.h"

namespace stoker::tune {
namespace {

// What is less memory: short trials are seen once or twice, and their figures differ by more than points do.
constexpr double kSameMemory = 1.5, kSameBytes = 256e6;

double knob_or_most(const Point& point, std::string_view knob) {
  return number_of(point, knob).value_or(std::numeric_limits<double>::max());
}

const Measured* cheapest(std::vector<const Measured*> candidates) {
  const bool all_know =
      std::all_of(candidates.begin(), candidates.end(), [](const Measured* m) { return m->host_bytes.has_value(); });
  if (all_know) {
    double least = std::numeric_limits<double>::max();
    for (const Measured* one : candidates) least = std::min(least, *one->host_bytes);
    std::erase_if(candidates, [&](const Measured* one) {
      return *one->host_bytes > std::max(kSameMemory * least, least + kSameBytes);
    });
  }
  const auto cost = [](const Measured* one) {
    return std::tuple(knob_or_most(*one->point, "num_workers"), knob_or_most(*one->point, "batch_size"),
                      knob_or_most(*one->point, "prefetch_factor"), -one->rate);
  };
  return *std::min_element(candidates.begin(), candidates.end(),
                           [&](const Measured* a, const Measured* b) { return cost(a) < cost(b); });
}

bool differs_only_in_workers(const Point& a, const Point& b) {
  Point without_a = a, without_b = b;
  const auto is_workers = [](const auto& knob) { return role_of(knob.first) == "num_workers"; };
  std::erase_if(without_a, is_workers);
  std::erase_if(without_b, is_workers);
  return without_a == without_b;
}

std::optional<double> knee_at(const Point& chosen, const std::vector<Measured>& all) {
  std::map<double, double> curve;
  for (const Measured& one : all) {
    const std::optional<double> workers = number_of(*one.point, "num_workers");
    if (workers && !one.ok.empty() && differs_only_in_workers(chosen, *one.point)) curve[*workers] = one.rate;
  }
  std::vector<double> x, y;
  for (const auto& [workers, rate] : curve) {
    x.push_back(workers);
    y.push_back(rate);
  }
  const std::optional<std::size_t> at = knee(x, y);
  return at ? std::optional(x[*at]) : std::nullopt;
}

std::string reason_of(const Measured& chosen, const Measured& best, double tolerance, double noise) {
  const std::string within = fmt::format("{:g} %", 100 * tolerance);
  const std::string rates = fmt::format("{} against {} samples/s", format_rate(chosen.rate), format_rate(best.rate));
  const bool is_best = &chosen == &best;
  if (noise > 0) {
    return fmt::format(
        "{}; but runs of one point differ by up to {:.0f} %, so which points lie within {} of each other cannot be "
        "told",
        is_best ? fmt::format("the fastest that ran, {} samples/s", format_rate(best.rate))
                : fmt::format("the cheapest that came near the fastest: {}", rates),
        100 * noise, within);
  }
  if (is_best) {
    return fmt::format("the fastest that ran, {} samples/s, and nothing cheaper that always ran comes within {}",
                       format_rate(best.rate), within);
  }
  const bool told_apart = chosen.rate + chosen.half_width < best.rate - best.half_width;
  return fmt::format("the cheapest within {} of the fastest: {}, {}", within, rates,
                     told_apart ? "a small but sure difference" : "a difference that these runs cannot tell from none");
}

}  // namespace

std::optional<std::size_t> knee(std::span<const double> x, std::span<const double> y) {
  const std::size_t n = std::min(x.size(), y.size());
  if (n < 3) return std::nullopt;
  const auto ends = std::minmax_element(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(n));
  const double low = *ends.first, width = x[n - 1] - x[0], height = *ends.second - low;
  if (!(width > 0) || !(height > 0)) return std::nullopt;
  const auto difference = [&](std::size_t i) { return (y[i] - low) / height - (x[i] - x[0]) / width; };
  const double step = 1.0 / static_cast<double>(n - 1);  // the mean distance of the normalised x
  for (std::size_t i = 1; i + 1 < n; ++i) {
    const double here = difference(i);
    if (here <= difference(i - 1) || here < difference(i + 1)) continue;
    const double threshold = here - step;
    for (std::size_t j = i + 1; j < n; ++j) {
      if (difference(j) < threshold) return i;
      if (difference(j) > here) break;  // a higher maximum follows: that one counts
    }
  }
  return std::nullopt;
}

Choice choose(std::span<const Row> rows, double tolerance, double noise) {
  const std::vector<Measured> all = measured(rows, noise);
  Choice choice{.points = all.size()};
  std::vector<const Measured*> ran, steady;
  for (const Measured& one : all) {
    if (one.ok.empty()) {
      ++choice.failures[one.last == Status::ok ? Status::hang : one.last];  // ok without a rate: it made no step
      continue;
    }
    ++choice.ok;
    ran.push_back(&one);
    if (!one.has_failed) steady.push_back(&one);
  }
  if (ran.empty()) {
    choice.reason = all.empty() ? "nothing was tried" : fmt::format("none of {} points ran", all.size());
    return choice;
  }
  const std::vector<const Measured*>& candidates = steady.empty() ? ran : steady;
  std::vector<Sampled> sampled;
  for (const Measured* one : candidates) {
    sampled.push_back({.point = one->point});
    for (const std::size_t i : one->ok) sampled.back().runs.push_back(&rows[i]);
  }
  const std::vector<Expected> rates = expected(sampled, spread_of(sampled).of_runs);
  const auto top = std::max_element(rates.begin(), rates.end(),
                                    [](const Expected& a, const Expected& b) { return a.log_rate < b.log_rate; });
  const Measured* const best = candidates[static_cast<std::size_t>(top - rates.begin())];
  std::vector<const Measured*> good;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (rates[i].log_rate >= top->log_rate + std::log(1 - tolerance)) good.push_back(candidates[i]);
  }
  const Measured* const chosen = cheapest(good);
  choice.best = best->row;
  choice.chosen = chosen->row;
  choice.noise = noise_of(all);
  choice.reason = reason_of(*chosen, *best, tolerance, choice.noise);
  choice.knee = knee_at(*chosen->point, all);
  return choice;
}

}  // namespace stoker::tune
