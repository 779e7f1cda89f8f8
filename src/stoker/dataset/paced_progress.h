// Calls a Progress at most every 100 ms. For one thread.
#pragma once

#include <chrono>
#include <cstdint>

#include "stoker/dataset/dataset.h"

namespace stoker::dataset {

class PacedProgress {
 public:
  explicit PacedProgress(const Progress& progress) : progress_(progress) {}  // borrowed; may be empty

  // False: the caller cancels.
  bool goes_on(std::uint64_t seen) {
    if (!progress_) return true;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return true;
    next_ = now + std::chrono::milliseconds(100);
    return progress_(seen);
  }

 private:
  const Progress& progress_;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace stoker::dataset
