// How far a long piece of work is, told at most ten times a second to the caller. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

namespace stoker::prepare {

struct PackProgress {
  std::string_view phase;             // "scanning", "packing", "writing"
  std::uint64_t done = 0, total = 0;  // samples; total 0: not known
  std::uint64_t bytes = 0;            // written, or read by a check
  double seconds = 0;                 // since restart()
};

// Called on the working thread; false ends the work with Error(unavailable, "interrupted").
using TellProgress = std::function<bool(const PackProgress&)>;

class ProgressTeller {
 public:
  explicit ProgressTeller(TellProgress tell) : tell_(std::move(tell)) {}

  void restart() {  // the next call tells
    since_ = Clock::now();
    told_ = {};
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - since_).count(); }
  // False: the caller wants it to end.
  bool operator()(std::string_view phase, std::uint64_t done, std::uint64_t total, std::uint64_t bytes) {
    if (!tell_) return true;
    const Clock::time_point now = Clock::now();
    if (now - told_ < std::chrono::milliseconds(100)) return true;
    told_ = now;
    return tell_({phase, done, total, bytes, seconds()});
  }

 private:
  using Clock = std::chrono::steady_clock;

  TellProgress tell_;
  Clock::time_point since_ = Clock::now(), told_{};
};

}  // namespace stoker::prepare
