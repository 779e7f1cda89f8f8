#include "stoker/storage/s3/retry.h"

#include <algorithm>

namespace stoker::storage::s3 {
namespace {

constexpr auto kWindow = std::chrono::milliseconds(250);
constexpr std::uint64_t kLeastPerWindow = 32;            // requests; fewer say little
constexpr auto kCalm = std::chrono::milliseconds(1000);  // many answers of one overload count once

}  // namespace

Duration RetryPolicy::pause(int tries, double random, Duration asked_for) const noexcept {
  const int doublings = std::clamp(tries - 1, 0, 30);
  const Duration whole =
      first > longest / (std::int64_t{1} << doublings) ? longest : first * (std::int64_t{1} << doublings);
  const auto jittered = Duration(static_cast<std::int64_t>(static_cast<double>(whole.count()) * (0.5 + 0.5 * random)));
  return std::max(jittered, std::min(asked_for, 4 * longest));
}

DepthControl::DepthControl(std::size_t cap) noexcept : cap_(std::max<std::size_t>(cap, 1)), limit_(cap_) {
  least_of_.fill(Duration::max());
}

void DepthControl::finished(Time now, Duration latency) noexcept {
  if (count_ == 0) began_ = now - std::min<Duration>(latency, kWindow);
  ++count_;
  sum_ += latency;
  least_ = std::min(least_, latency);
  if (now - began_ >= kWindow && count_ >= kLeastPerWindow) close_window(now);
}

void DepthControl::close_window(Time now) noexcept {
  least_of_[next_++ % kWindows] = least_;
  const Duration base = *std::min_element(least_of_.begin(), least_of_.end());
  const Duration mean = sum_ / static_cast<std::int64_t>(count_);
  const double per_second = static_cast<double>(count_) / std::chrono::duration<double>(now - began_).count();
  const auto needed = static_cast<std::size_t>(per_second * std::chrono::duration<double>(base).count());
  const std::size_t least = std::min(cap_, kLeast);
  if (mean > 8 * base && limit_ > 4 * needed) {
    limit_ = std::clamp(std::max(4 * needed, limit_ / 2), least, cap_);
  } else if (mean < 4 * base && now - throttled_at_ > kCalm) {
    limit_ = std::min(cap_, limit_ + std::max<std::size_t>(limit_ / 4, 1));
  }
  count_ = 0;
  sum_ = {};
  least_ = Duration::max();
}

void DepthControl::throttled(Time now) noexcept {
  if (throttled_at_ != Time{} && now - throttled_at_ < kCalm) return;
  throttled_at_ = now;
  limit_ = std::max<std::size_t>(1, limit_ / 2);
}

void HedgeControl::answered(Duration to_first_byte) noexcept {
  recent_[count_++ % kKept] = to_first_byte;
  credit_ = std::min(credit_ + 1, kMostCredit);
  if (count_ < kKept || count_ % (kKept / 8) != 0) return;
  std::array<Duration, kKept> sorted = recent_;
  const auto slow = sorted.begin() + kKept * 95 / 100;
  std::nth_element(sorted.begin(), slow, sorted.end());
  slow_ = *slow;
}

std::optional<Duration> HedgeControl::patience() const noexcept {
  if (slow_ == Duration{} || credit_ < kShare) return {};
  return std::max(kLeast, 2 * slow_);
}

}  // namespace stoker::storage::s3
