#include "stoker/plan/bundles.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

namespace stoker::plan {
namespace {

constexpr double kAdds = 1.03;          // times the gain without it, for a change to be added
constexpr double kBundleFaster = 1.02;  // times the gain of the bundle before
constexpr std::size_t kMostChanges = 3;

using Field = double Stages::*;
constexpr Field kFields[] = {&Stages::batch_size, &Stages::workers,      &Stages::io_threads, &Stages::cores,
                             &Stages::fetch_s,    &Stages::prep_s,       &Stages::handoff_s,  &Stages::compute_s,
                             &Stages::cpu_s,      &Stages::storage_per_s};

// More workers and cheaper preparation both act on what the loader prepares in a second.
std::vector<Limit> acts_on(const Stages& now, const Stages& then) {
  const auto differs = [&](Field field) { return now.*field != then.*field; };
  std::vector<Limit> all;
  if (differs(&Stages::workers) || differs(&Stages::prep_s) || differs(&Stages::cpu_s) || differs(&Stages::cores))
    all.push_back(Limit::prep);
  if (differs(&Stages::fetch_s) || differs(&Stages::storage_per_s) || differs(&Stages::io_threads))
    all.push_back(Limit::fetch);
  if (differs(&Stages::handoff_s) || differs(&Stages::batch_size)) all.push_back(Limit::handoff);
  if (differs(&Stages::compute_s)) all.push_back(Limit::compute);
  return all;
}

// Alone it may bring nothing, because another stage is the limit: together with what widens that it may.
bool is_usable(const Option& option, const Situation& situation) {
  if (!option.feasible || !option.stages) return false;
  const double host = situation.limits.memory_bytes, device = situation.device_limit_bytes;
  if (host > 0 && option.host_bytes.value_or(0) > host) return false;
  return device <= 0 || option.device_bytes.value_or(0) <= device;
}

// Greedy: the change that brings most, then the next that the result still gains from.
Bundle build(const Situation& situation, const std::vector<Option>& options,
             const std::function<bool(const Option&)>& takes, bool cheap) {
  const Stages& now = *situation.stages;
  const double base = predict(now).per_s;
  Bundle bundle;
  Stages stages = now;
  double gain = 1;
  while (bundle.members.size() < kMostChanges) {
    std::optional<std::size_t> next;
    double best = gain * kAdds, memory = 0;
    Stages then;
    for (std::size_t i = 0; i < options.size(); ++i) {
      if (!is_usable(options[i], situation) || !takes(options[i])) continue;
      const std::optional<Stages> both = combined(now, stages, *options[i].stages);
      if (!both) continue;
      const double with = predict(*both).per_s / base, bytes = options[i].host_bytes.value_or(0);
      const bool is_better = cheap && next ? bytes < memory && with >= gain * kAdds : with > best;
      if (!is_better) continue;
      next = i, best = with, memory = bytes, then = *both;
    }
    if (!next) break;
    bundle.members.push_back(*next);
    stages = then;
    gain = predict(stages).per_s / base;
  }
  const Predicted predicted = predict(stages);
  bundle.limit = name(predicted.limit);
  double error = 0;
  for (const std::size_t member : bundle.members) {
    const RateSpread& spread = options[member].gain;
    error = std::max(error, spread.p50 > 0 ? spread.p90 / spread.p50 - 1 : 0);
  }
  bundle.gain = {gain * (1 - error), gain, gain * (1 + error), 0, true};
  return bundle;
}

void describe(Bundle& bundle, const Situation& situation, const std::vector<Option>& options) {
  const double host_now = host_now_bytes(situation).value_or(0), device_now = situation.device_now_bytes;
  double host = host_now, device = device_now;
  bool knows_host = true, knows_device = false;
  for (const std::size_t member : bundle.members) {
    const Option& option = options[member];
    bundle.names.push_back(option.name);
    if (!option.command.empty()) bundle.commands.push_back(option.command);
    if (option.host_bytes) host += *option.host_bytes - host_now;
    knows_host = knows_host && (option.host_bytes || host_now > 0);
    if (option.device_bytes) device += *option.device_bytes - device_now, knows_device = true;
    if (option.risk > bundle.risk) bundle.risk = option.risk, bundle.reason = option.risk_reason;
    if (option.changes_training)
      bundle.training += (bundle.training.empty() ? "" : "; ") + fmt::format("{}: {}", option.name, option.training);
  }
  if (knows_host && host > 0) bundle.host_bytes = host;
  if (knows_device && device > 0) bundle.device_bytes = device;
  if (bundle.members.size() > 1 && bundle.risk < Risk::medium) {
    bundle.risk = Risk::medium;
    bundle.reason = "several changes at once: make them one by one, and measure each";
  }
  const double rate = situation.rate.p50 * bundle.gain.p50;
  if (rate <= 0) return;
  if (situation.job.images > 0) bundle.days = days_of(situation.job, rate);
  if (situation.job.epoch_images) bundle.epoch_hours = *situation.job.epoch_images / rate / 3600;
}

}  // namespace

std::optional<Stages> combined(const Stages& now, const Stages& one, const Stages& other) {
  for (const Limit limit : acts_on(now, one)) {
    for (const Limit same : acts_on(now, other)) {
      if (limit == same) return std::nullopt;
    }
  }
  Stages both = one;
  for (const Field field : kFields) {
    if (other.*field != now.*field) both.*field = other.*field;
  }
  if (other.fetch_in_workers != now.fetch_in_workers) both.fetch_in_workers = other.fetch_in_workers;
  return both;
}

std::vector<Bundle> bundles(const Situation& situation, const std::vector<Option>& options) {
  if (!situation.stages) return {};
  struct Level {
    char label;
    const char* title;
    Risk most;
    bool may_change_training, cheap;
  };
  constexpr Level kLevels[] = {{'A', "careful", Risk::low, false, true},
                               {'B', "balanced", Risk::medium, false, false},
                               {'C', "bold", Risk::high, true, false}};
  std::vector<Bundle> all;
  for (const Level& level : kLevels) {
    const auto takes = [&](const Option& option) {
      return option.risk <= level.most && (level.may_change_training || !option.changes_training);
    };
    Bundle bundle = build(situation, options, takes, level.cheap);
    if (bundle.members.empty()) continue;
    if (!all.empty() && bundle.gain.p50 < kBundleFaster * all.back().gain.p50) continue;
    describe(bundle, situation, options);
    bundle.title = level.title;
    bundle.label = level.label;
    all.push_back(std::move(bundle));
  }
  return all;
}

}  // namespace stoker::plan
