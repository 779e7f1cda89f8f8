// num_workers=auto: fewer workers while the consumer is the limit, more when it waits for them. Batches never change,
// only who makes them. Plain arithmetic; the engine makes every call with Signals::mutex held.
#pragma once

#include <cstdint>

#include "stoker/meter/ledger.h"

namespace stoker::loader {

class WorkerCount {
 public:
  // `most` workers may work at the most. `wanted_ready`: ready batches that show that the workers are ahead.
  WorkerCount(int most, std::uint64_t wanted_ready) noexcept : most_(most), wanted_ready_(wanted_ready) {}

  // After each batch: what its wait was for, and how long the consumer computed before it. Returns how many workers may
  // work from now on.
  int after_batch(int active, const meter::WaitSplit& wait, std::int64_t compute_ns,
                  std::uint64_t ready_batches) noexcept;

 private:
  const int most_;
  const std::uint64_t wanted_ready_;
  meter::WaitSplit wait_;  // since the last look
  std::int64_t compute_ns_ = 0;
  std::uint64_t batches_ = 0;
};

}  // namespace stoker::loader
