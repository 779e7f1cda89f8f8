// When a sample is used, and when again in the next epoch: what a disk cache of limited size chooses by. Computed from
// the order, nothing is stored. Belongs to one I/O thread.
#pragma once

#include <cstdint>
#include <optional>

#include "stoker/dataset/order.h"
#include "stoker/loader/job.h"
#include "stoker/storage/next_use.h"

namespace stoker::loader {

class UseForecast {
 public:
  explicit UseForecast(const Job& job);  // borrows it

  // Of the sample `index` at `position` of an epoch. Unknown where the data set repeats samples within an epoch.
  storage::NextUse of(std::uint64_t epoch, std::uint64_t position, std::uint64_t index);

 private:
  const Job& job_;
  std::uint64_t order_;  // the same number for every rank and every resumed run of a job; 0: unknown
  std::uint64_t next_epoch_ = 0;
  std::optional<dataset::Order> next_;  // of next_epoch_
};

}  // namespace stoker::loader
