// num_workers=auto: fewer workers while the consumer is the limit and fewer can do the work, more when it waits for
// them. Batches never change, only who makes them. Plain arithmetic; the engine makes every call with Signals::mutex
// held.
#pragma once

#include <cstdint>

#include "stoker/meter/ledger.h"

namespace stoker::loader {

class WorkerCount {
 public:
  // `most` workers may work at the most. `wanted_ready`: ready batches that show that the workers are ahead.
  WorkerCount(int most, std::uint64_t wanted_ready) noexcept : most_(most), wanted_ready_(wanted_ready) {}

  struct Seen {
    meter::WaitSplit wait = {};       // of this batch
    std::int64_t compute_ns = 0;      // of the consumer, before it
    std::int64_t busy_ns = 0;         // of all workers together, since they began
    std::uint64_t ready_batches = 0;  // behind it
  };
  // After each batch. Returns how many workers may work from now on.
  int after_batch(int active, const Seen& seen) noexcept;

 private:
  const int most_;
  const std::uint64_t wanted_ready_;
  meter::WaitSplit wait_;  // since the last look
  std::int64_t compute_ns_ = 0;
  std::int64_t busy_before_ns_ = 0;  // at the last look
  std::uint64_t batches_ = 0;
};

}  // namespace stoker::loader
