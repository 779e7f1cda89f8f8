// An emulated accelerator: takes batches from a loader and sleeps for its step, which needs no CPU. One thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "stoker/loader/loader.h"
#include "stoker/meter/ledger.h"
#include "stoker/storage/store_figures.h"

namespace stoker::feed {

// A span of the run. The first step of the run is in no span (MLPerf Storage leaves it out), unless it is the only one.
struct Span {
  std::uint64_t epoch = 0;
  std::uint64_t steps = 0, samples = 0;
  std::uint64_t encoded_bytes = 0, decoded_bytes = 0;
  double running_s = 0, compute_s = 0;
  meter::WaitSplit wait;
  // What was asked of stores meanwhile, also for the first step and, ahead of time, for the next epoch.
  storage::StoreFigures store;

  double samples_per_s() const { return running_s > 0 ? static_cast<double>(samples) / running_s : 0; }
  double encoded_bytes_per_s() const { return running_s > 0 ? static_cast<double>(encoded_bytes) / running_s : 0; }
  double decoded_bytes_per_s() const { return running_s > 0 ? static_cast<double>(decoded_bytes) / running_s : 0; }
  double au() const { return running_s > 0 ? compute_s / running_s : 0; }  // compute time / running time
  // Neither compute nor wait: the thread that takes the batches counts them, wakes late from its step, or has no core.
  double other_s() const { return std::max(0.0, running_s - compute_s - static_cast<double>(wait.total_ns()) * 1e-9); }
  double other_share() const { return running_s > 0 ? other_s() / running_s : 0; }
  double share(std::int64_t ns) const { return running_s > 0 ? static_cast<double>(ns) * 1e-9 / running_s : 0; }
};

struct Fed {
  Span total;  // epochs together
  std::vector<Span> epochs;
  std::uint64_t steps = 0, samples = 0;  // with the first step
  double wall_s = 0, cpu_s = 0;
  double first_batch_s = 0;
  bool first_step_excluded = false;
  bool interrupted = false;  // FeedOptions::interrupted said so
  loader::Stats stats;
  std::uint64_t process_peak_bytes = 0;  // anonymous and shared memory, largest seen
};

struct FeedOptions {
  std::chrono::nanoseconds step{0};                                    // 0: as fast as batches come
  std::uint64_t end_epoch = 1;                                         // first epoch not to run
  std::uint64_t steps = 0;                                             // stop after this number; 0: no limit
  std::chrono::nanoseconds time{0};                                    // stop after so long; 0: no limit
  std::function<void(const Fed& so_far, double per_second)> progress;  // about ten times a second
  std::function<bool()> interrupted;                                   // asked at every step, and while it lasts
};

// Starts where the loader stands (a fresh loader: epoch 0). Throws what next() throws, except where it was
// interrupted. `fed` holds what was measured, also when it throws.
void feed(loader::Loader& loader, const FeedOptions& options, Fed& fed);

}  // namespace stoker::feed
