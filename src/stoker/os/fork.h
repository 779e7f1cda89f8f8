// Tells whether this process is a fork of the one that made an object. Threads do not survive a fork, so neither do
// loaders.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace stoker::os {

// A number that changes in every child made by fork(). Compare the one at construction with the one now.
std::uint64_t fork_generation() noexcept;

// One object for each process: a child made by fork() makes its own, because locks of the parent's may be held, and its
// connections belong to the parent. Objects are never destroyed: threads may use them until the process ends.
template <typename T>
class PerProcess {
 public:
  T& get() {
    Made* known = made_.load(std::memory_order_acquire);
    if (known != nullptr && known->generation == fork_generation()) return known->object;
    auto fresh = std::make_unique<Made>();
    if (made_.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) return fresh.release()->object;
    return known->object;  // another thread was quicker
  }

 private:
  struct Made {
    std::uint64_t generation = fork_generation();
    T object;
  };
  std::atomic<Made*> made_{nullptr};
};

}  // namespace stoker::os
