// Which sample is next: a pure function of (seed, epoch, position). No state, O(1) memory, O(1) seek, the same global
// sequence for any number of ranks. Immutable; safe from any thread.
#pragma once

#include <cstdint>

#include "stoker/base/permutation.h"

namespace stoker::dataset {

enum class LastBatch : std::uint8_t {
  keep,  // short: what is left is shared out evenly (a rank gets none only if less than one each is left)
  drop,  // left out
  pad,   // filled to batch_size from the start of the epoch, so that all shapes are equal; the fill is marked not valid
};

struct OrderOptions {
  std::uint64_t size = 0;        // samples
  bool shuffle = false;
  std::uint64_t seed = 0;
  std::uint64_t batch_size = 1;  // per rank
  std::uint64_t rank = 0, world_size = 1;
  LastBatch last_batch = LastBatch::keep;
};

// The samples of one batch: global positions [first, first + count), the tail of which may be padding.
struct BatchRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t valid = 0;   // the first `valid` are this epoch's own; the others are padding
};

// One epoch, entered at global position `start` (a multiple of nothing: a resumed run may start anywhere).
class Order {
 public:
  Order(const OrderOptions& options, std::uint64_t epoch, std::uint64_t start = 0);

  std::uint64_t steps() const noexcept { return steps_; }                 // batches left, the same on every rank
  BatchRange batch(std::uint64_t step) const noexcept;                    // this rank's part of step `step` < steps()
  std::uint64_t position_after(std::uint64_t step) const noexcept;        // global position once `step` is handed out
  std::uint64_t sample(std::uint64_t position) const noexcept;            // sample index; padding wraps round
  // A stand-in for the sample at `position`, for try 0, 1, ...: the same on every run and every rank count.
  std::uint64_t replacement(std::uint64_t position, std::uint32_t attempt) const noexcept;

 private:
  OrderOptions options_;
  std::uint64_t epoch_;
  std::uint64_t start_;
  std::uint64_t steps_;
  Permutation permutation_;
};

}  // namespace stoker::dataset
