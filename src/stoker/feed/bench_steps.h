// Measures steps of a loader in blocks, after a warm-up, and reports each block as a JSON line to the descriptor in
// STOKER_REPORT_FD, where there is one: what a trial of `stoker tune` runs. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "stoker/loader/loader.h"

namespace stoker::feed {

struct BenchSteps {
  std::uint64_t warmup_steps = 5, bench_steps = 20;  // at least; more until `least` is over: shorter is mostly chance
  std::chrono::nanoseconds least = std::chrono::milliseconds(500);
  std::chrono::nanoseconds step{0};  // of the emulated accelerator
  std::function<bool()> interrupted = {};
};

// What one sample cost each stage while the clock ran: seconds of one thread. `stoker plan` predicts from it.
struct Ledger {
  double fetch_s = 0, prep_s = 0;  // of I/O threads, with the wait for reads; of workers
  double handoff_s = 0;            // of the consumer, without compute
  double compute_s = 0;            // of the emulated accelerator
  double cpu_s = 0;                // CPU time of the process
  double sample_bytes = 0, decoded_bytes = 0;
  double usable_cores = 0;  // used by this process, or idle; the rest other programs had. 0: not known
  double fetch_share = 0;   // of the running time: the consumer waited for bytes
  int num_workers = 0, io_threads = 0;
};

struct Benched {
  std::uint64_t steps = 0, samples = 0;
  double seconds = 0;
  double samples_per_s = 0;  // corrected for batches that were ready before, or lie ready now
  Ledger ledger;
};

// The loader stands at the start of an epoch. Epochs follow one another. Throws what next() throws. Ends
// early where it is interrupted. Once `least` is over, the number of steps that are left is known, and the loader reads
// nothing ahead of the last one (Loader::expect_steps).
Benched bench_steps(loader::Loader& loader, const BenchSteps& options);

// Reports, to the same descriptor, why there is nothing to measure. `text` is the message as the face spells it;
// `option` the one that it concerns, or empty.
void report_failure(const std::string& text, const std::string& option);

}  // namespace stoker::feed
