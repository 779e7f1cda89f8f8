// One wait: when its caller is asked next whether to give up, and since when nothing has moved. Belongs to the thread
// that waits. Time is passed in.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "stoker/loader/loader.h"

namespace stoker::loader {

class Watch {
 public:
  static constexpr auto kAskEvery = std::chrono::milliseconds(50);

  // `progress` grows whenever something moves. `timeout` 0: never too long. Borrows both references.
  Watch(const std::atomic<std::uint64_t>& progress, std::chrono::nanoseconds timeout, const Interrupted& interrupted,
        std::int64_t now_ns) noexcept
      : progress_(progress),
        timeout_(timeout),
        interrupted_(interrupted),
        asked_ns_(now_ns),
        moved_ns_(now_ns),
        seen_(progress.load(std::memory_order_relaxed)) {}

  // True about every kAskEvery: then ask, and look whether something moved.
  bool is_due(std::int64_t now_ns) noexcept {
    if (now_ns - asked_ns_ < std::chrono::nanoseconds(kAskEvery).count()) return false;
    asked_ns_ = now_ns;
    return true;
  }
  bool can_ask() const noexcept { return static_cast<bool>(interrupted_); }
  // Whether the caller gives up. Runs the caller's code: hold no lock.
  bool gives_up() const { return interrupted_(); }

  // How long nothing has moved, if that is longer than `timeout`; else 0.
  std::chrono::nanoseconds too_long(std::int64_t now_ns) noexcept {
    if (const std::uint64_t progress = progress_.load(std::memory_order_relaxed); progress != seen_) {
      seen_ = progress;
      moved_ns_ = now_ns;
      return {};
    }
    const std::chrono::nanoseconds idle(now_ns - moved_ns_);
    return timeout_.count() <= 0 || idle < timeout_ ? std::chrono::nanoseconds{} : idle;
  }

 private:
  const std::atomic<std::uint64_t>& progress_;
  const std::chrono::nanoseconds timeout_;
  const Interrupted& interrupted_;
  std::int64_t asked_ns_, moved_ns_;
  std::uint64_t seen_;
};

}  // namespace stoker::loader
