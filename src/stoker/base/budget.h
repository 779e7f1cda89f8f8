// A hard limit in bytes, kept by admission: memory is taken from the budget before it is touched, and given back after.
// Safe from any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace stoker {

class Budget {
 public:
  explicit Budget(std::uint64_t limit_bytes) noexcept : limit_(limit_bytes) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Takes `bytes` if they fit under the limit; otherwise takes nothing and returns false.
  [[nodiscard]] bool try_take(std::uint64_t bytes) noexcept {
    std::uint64_t used = used_.load(std::memory_order_relaxed);
    do {
      if (bytes > limit_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    std::uint64_t peak = peak_.load(std::memory_order_relaxed);
    while (peak < used + bytes && !peak_.compare_exchange_weak(peak, used + bytes, std::memory_order_relaxed)) {
    }
    return true;
  }
  void give_back(std::uint64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  std::uint64_t limit_bytes() const noexcept { return limit_; }
  std::uint64_t used_bytes() const noexcept { return used_.load(std::memory_order_relaxed); }
  std::uint64_t peak_bytes() const noexcept { return peak_.load(std::memory_order_relaxed); }

 private:
  const std::uint64_t limit_;
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> peak_{0};
};

}  // namespace stoker
