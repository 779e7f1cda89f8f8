// What a job did so far, kept up to date while it runs: each finished step is looked at once. One thread.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "stoker/measure/job.h"

namespace stoker::measure {

// How many steps took at most each bound in seconds, cumulative as monitoring systems want them.
struct StepHistogram {
  static constexpr std::array<double, 15> kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                     0.5,   1,      2.5,   5,    10,    30,   60};
  std::array<std::uint64_t, kBounds.size()> up_to{};
  std::uint64_t count = 0;
  double sum_s = 0;

  void add(double seconds) noexcept;
};

// The loaders of one rank that train, or those that evaluate.
struct LiveSums {
  Steps steps;  // by the host's clock; h2d where a device told
  StepHistogram histogram;
};

class Live {
 public:
  struct Role {
    bool evaluation = false;
    int rank = 0;
    auto operator<=>(const Role&) const = default;
  };

  void update(const Job& job, std::int64_t now_ns);

  const std::map<Role, LiveSums>& sums() const noexcept { return sums_; }
  const Steps& training() const noexcept { return training_; }  // of all ranks; of evaluation where nothing trains
  Steps recent() const;                                         // the same in the last half minute
  double ready() const;                                         // finished batches that lay waiting, mean of the same
  std::uint64_t queue() const noexcept { return queue_; }       // how many may; 0: no workers

 private:
  struct Moment {
    std::int64_t at_ns = 0;
    Steps steps;
    std::uint64_t ready = 0;
  };

  std::map<Role, LiveSums> sums_;
  std::map<std::pair<int, int>, std::size_t> seen_;  // process and number of a loader: how many of its steps
  Steps training_;
  std::uint64_t ready_ = 0, queue_ = 0;
  std::deque<Moment> moments_;
};

}  // namespace stoker::measure
