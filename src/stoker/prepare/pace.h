// Keeps reading below a number of bytes per second. Pure: the caller brings the time. One thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace stoker::prepare {

class Pace {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit Pace(std::uint64_t bytes_per_s) noexcept : bytes_per_s_(bytes_per_s) {}  // 0: no limit

  // How long the next request has to wait; zero or less: it may go.
  std::chrono::nanoseconds wait(Time now) const noexcept {
    return bytes_per_s_ == 0 ? std::chrono::nanoseconds(0) : std::chrono::nanoseconds(free_at_ - now);
  }
  // A request of `bytes` was sent. Over any time, at most the rate, one request and kCredit pass.
  void count(std::uint64_t bytes, Time now) noexcept {
    if (bytes_per_s_ == 0) return;
    const double seconds = static_cast<double>(bytes) / static_cast<double>(bytes_per_s_);
    free_at_ = std::max(free_at_, now - kCredit) + std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
  }

 private:
  static constexpr std::chrono::milliseconds kCredit{100};  // time that was lost in waiting is made up for, so much

  std::uint64_t bytes_per_s_;
  Time free_at_{};
};

}  // namespace stoker::prepare
