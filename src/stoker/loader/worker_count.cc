#include "stoker/loader/worker_count.h"

#include <algorithm>

namespace stoker::loader {
namespace {

constexpr std::uint64_t kAdjustEvery = 16;  // batches
// The share of their time that the workers left may be busy. Above it, some batches come late: with two workers 70 %
// busy, resting one made every second look of 16 steps a third slower.
constexpr double kMostBusy = 0.8;

}  // namespace

int WorkerCount::after_batch(int active, const Seen& seen) noexcept {
  wait_ += seen.wait;
  compute_ns_ += seen.compute_ns;
  if (++batches_ < kAdjustEvery) return active;
  const double total = static_cast<double>(std::max<std::int64_t>(1, compute_ns_ + wait_.total_ns()));
  const double waiting = static_cast<double>(wait_.total_ns()) / total;
  const double prep = static_cast<double>(wait_.prep_ns) / total;
  const double busy = static_cast<double>(seen.busy_ns - busy_before_ns_) / total;  // workers, on average
  wait_ = {};
  compute_ns_ = 0;
  busy_before_ns_ = seen.busy_ns;
  batches_ = 0;
  if (prep > 0.02 && active < most_) return most_;
  const bool is_ahead = waiting < 0.005 && seen.ready_batches >= wanted_ready_;
  if (is_ahead && active > 1 && busy < kMostBusy * (active - 1)) return active - 1;
  return active;
}

}  // namespace stoker::loader
