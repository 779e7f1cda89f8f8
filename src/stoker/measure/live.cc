#include "stoker/measure/live.h"

#include <algorithm>

namespace stoker::measure {
namespace {

constexpr std::int64_t kRecent = 30'000'000'000, kBetweenMoments = 400'000'000;

Steps minus(const Steps& a, const Steps& b) {
  Steps steps = a;
  steps.steps -= b.steps;
  steps.samples -= b.samples;
  steps.compute_ns -= b.compute_ns;
  steps.h2d_ns -= b.h2d_ns;
  steps.h2d_steps -= b.h2d_steps;
  steps.wait.start_ns -= b.wait.start_ns;
  steps.wait.task_ns -= b.wait.task_ns;
  steps.wait.fetch_ns -= b.wait.fetch_ns;
  steps.wait.prep_ns -= b.wait.prep_ns;
  steps.wait.collate_ns -= b.wait.collate_ns;
  steps.wait.deliver_ns -= b.wait.deliver_ns;
  steps.wait.unknown_ns -= b.wait.unknown_ns;
  return steps;
}

// How many of a loader's steps are over; of a device's, those whose events were read by now.
std::size_t finished(const LoaderRun& run) {
  const bool has_device = run.batch && !run.batch->device.empty();
  const std::size_t open = has_device ? 3 : 1, all = run.folded_steps + run.steps.size();
  return all > open ? all - open : 0;
}

}  // namespace

void StepHistogram::add(double seconds) noexcept {
  ++count;
  sum_s += seconds;
  for (std::size_t i = 0; i < kBounds.size(); ++i) {
    if (seconds <= kBounds[i]) ++up_to[i];
  }
}

void Live::update(const Job& job, std::int64_t now_ns) {
  const bool trains = std::any_of(job.loaders().begin(), job.loaders().end(),
                                  [](const auto& entry) { return !entry.second.is_evaluation(); });
  for (const auto& [key, run] : job.loaders()) {
    const Role role{run.is_evaluation(), run.rank};
    std::size_t& seen = seen_[key];
    seen = std::max(seen, run.folded_steps);
    for (; seen < finished(run); ++seen) {
      Step step = run.steps[seen - run.folded_steps];
      if (!step.settled) break;
      if (step.device_h2d_ns) {
        step.h2d_ns = std::clamp<std::int64_t>(*step.device_h2d_ns, 0, step.compute_ns);
        step.compute_ns -= *step.h2d_ns;
      }
      LiveSums& sums = sums_[role];
      const std::int64_t before = sums.steps.running_ns();
      sums.steps.add(step);
      sums.histogram.add(static_cast<double>(sums.steps.running_ns() - before) * 1e-9);
      if (role.evaluation && trains) continue;
      training_.add(step);
      ready_ += step.ready;
      queue_ = run.facts.kind == LoaderKind::torch ? static_cast<std::uint64_t>(run.facts.queued()) : 0;
    }
  }
  if (moments_.empty() || now_ns - moments_.back().at_ns >= kBetweenMoments)
    moments_.push_back({now_ns, training_, ready_});
  // One moment stays from before: steps may be longer than half a minute.
  while (moments_.size() > 2 && now_ns - moments_[1].at_ns > kRecent &&
         moments_[1].steps.steps < moments_.back().steps.steps)
    moments_.pop_front();
}

Steps Live::recent() const {
  return moments_.empty() ? training_ : minus(training_, moments_.front().steps);
}

double Live::ready() const {
  const std::uint64_t steps = recent().steps;
  if (steps == 0) return 0;
  return static_cast<double>(ready_ - moments_.front().ready) / static_cast<double>(steps);
}

}  // namespace stoker::measure
