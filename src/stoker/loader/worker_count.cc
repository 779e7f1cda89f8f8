#include "stoker/loader/worker_count.h"

#include <algorithm>

namespace stoker::loader {
namespace {

constexpr std::uint64_t kAdjustEvery = 16;  // batches

}  // namespace

int WorkerCount::after_batch(int active, const meter::WaitSplit& wait, std::int64_t compute_ns,
                             std::uint64_t ready_batches) noexcept {
  wait_ += wait;
  compute_ns_ += compute_ns;
  if (++batches_ < kAdjustEvery) return active;
  const double total = static_cast<double>(std::max<std::int64_t>(1, compute_ns_ + wait_.total_ns()));
  const double waiting = static_cast<double>(wait_.total_ns()) / total;
  const double prep = static_cast<double>(wait_.prep_ns) / total;
  wait_ = {};
  compute_ns_ = 0;
  batches_ = 0;
  if (prep > 0.02 && active < most_) return most_;
  if (waiting < 0.005 && active > 1 && ready_batches >= wanted_ready_) return active - 1;
  return active;
}

}  // namespace stoker::loader
