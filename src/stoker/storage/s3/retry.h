// When a request is tried again, how many are in flight, and when a second one is sent for the same bytes. Pure
// policies: the caller brings time and randomness. Each object belongs to one thread.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace stoker::storage::s3 {

using Duration = std::chrono::nanoseconds;
using Time = std::chrono::steady_clock::time_point;

struct RetryPolicy {
  int most_tries = 25;
  Duration first = std::chrono::milliseconds(100);
  Duration longest = std::chrono::seconds(8);

  bool may_try_again(int tries) const noexcept { return tries < most_tries; }
  // How long to wait after `tries` failed: between a half and the whole of first * 2^(tries - 1), at most `longest`;
  // `random` is in [0, 1). What the server asks for counts where it is more, up to four times `longest`.
  Duration pause(int tries, double random, Duration asked_for = {}) const noexcept;
};

// How many requests are on the wire at once: at most `cap`. Throttling halves it. Otherwise it follows rate x latency:
// where requests take several times as long as the quickest ones did, they queue somewhere, and fewer do the same.
class DepthControl {
 public:
  explicit DepthControl(std::size_t cap) noexcept;

  std::size_t limit() const noexcept { return limit_; }
  void finished(Time now, Duration latency) noexcept;
  void throttled(Time now) noexcept;

 private:
  void close_window(Time now) noexcept;

  static constexpr std::size_t kWindows = 8;  // the quickest request is remembered so long
  static constexpr std::size_t kLeast = 32;   // below this, shrinking saves nothing

  std::size_t cap_, limit_;
  Time began_{}, throttled_at_{};
  std::uint64_t count_ = 0;
  Duration sum_{}, least_ = Duration::max();
  std::array<Duration, kWindows> least_of_;
  std::size_t next_ = 0;
};

// Which requests are slow enough to be asked for once more. At most one in kShare requests is.
class HedgeControl {
 public:
  void answered(Duration to_first_byte) noexcept;
  // A request that has waited so long for its first byte may be hedged; none: too little is known, or the share is used
  // up.
  std::optional<Duration> patience() const noexcept;
  void hedged() noexcept { credit_ -= kShare; }

 private:
  static constexpr std::int64_t kShare = 20;
  static constexpr std::int64_t kMostCredit = 10 * kShare;
  static constexpr std::size_t kKept = 256;
  static constexpr Duration kLeast = std::chrono::milliseconds(20);

  std::array<Duration, kKept> recent_{};
  std::size_t count_ = 0;
  std::int64_t credit_ = 0;
  Duration slow_{};  // the 95th percentile, as of the last look
};

}  // namespace stoker::storage::s3
