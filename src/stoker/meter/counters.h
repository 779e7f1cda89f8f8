// The few counters that every stage keeps, one cache line per thread, always on. Written by their thread, read by
// anyone.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace stoker::meter {

using Clock = std::chrono::steady_clock;

inline std::int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

// A sum that one thread adds to and any thread reads; no locked instruction.
class Sum {
 public:
  void add(std::int64_t value) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }
  std::int64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

struct alignas(64) StageCounters {
  Sum busy_ns;        // doing the stage's work
  Sum input_wait_ns;  // nothing to do: the stage before is the slower one
  Sum room_wait_ns;   // nowhere to put it: the stage after is the slower one
  Sum items;
  Sum bytes;
};

struct StageTotals {
  double busy_s = 0, input_wait_s = 0, room_wait_s = 0;
  std::uint64_t items = 0, bytes = 0;
  void add(const StageCounters& counters) noexcept;
};

// A queue's depth over time: mean weighted by time, least, most, and the share of time it was empty.
// Not synchronised: the owner of the queue calls it under the queue's lock.
class DepthMeter {
 public:
  void start(std::int64_t at_ns, std::uint64_t depth) noexcept;
  void change(std::int64_t at_ns, std::uint64_t depth) noexcept;

  struct Depth {
    double mean = 0;
    std::uint64_t least = 0, most = 0;
    double empty_share = 0;
    std::uint64_t now = 0;
  };
  Depth read(std::int64_t at_ns) const noexcept;

 private:
  std::int64_t started_ns_ = 0, changed_ns_ = 0, empty_ns_ = 0;
  double area_ = 0;
  std::uint64_t depth_ = 0, least_ = 0, most_ = 0;
};

}  // namespace stoker::meter
