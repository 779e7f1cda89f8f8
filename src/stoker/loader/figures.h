// What a loader handed out, and where its consumer's time went. Not synchronised: the engine makes every call with
// Signals::mutex held. The counters of threads and the depths of queues belong to their owners.
#pragma once

#include <cstdint>
#include <span>

#include "stoker/loader/loader.h"
#include "stoker/meter/counters.h"
#include "stoker/meter/ledger.h"

namespace stoker::loader {

class Figures {
 public:
  explicit Figures(std::int64_t constructed_ns) noexcept : constructed_ns_(constructed_ns) {}

  void epoch_entered() noexcept { returned_ns_ = 0; }  // the time between two epochs is not compute

  // next() was called. Returns the time since the last batch of this epoch, which is compute.
  std::int64_t asked(std::int64_t called_ns) noexcept;

  struct HandedOut {
    std::int64_t called_ns = 0, now_ns = 0;  // when next() was called, and when it returns
    std::uint64_t samples = 0, bytes = 0;
  };
  // A batch is handed out. `times` are those of its rows; the return value says what the wait was for.
  meter::WaitSplit handed_out(const HandedOut& batch, std::span<const meter::RowTimes> times) noexcept;

  // Fills in its own fields, and takes what was counted before the last reset off `fetch`, `prep` and `store`.
  void fill(Stats& stats) const noexcept;
  // Starts from zero; `fetch`, `prep` and `store` of `now` are what the threads have counted so far. The time to the
  // first batch stays.
  void reset(const Stats& now) noexcept;

 private:
  const std::int64_t constructed_ns_;
  std::uint64_t samples_ = 0, batches_ = 0, decoded_bytes_ = 0;
  std::int64_t compute_ns_ = 0, first_batch_ns_ = 0;
  std::int64_t run_started_ns_ = 0, run_ended_ns_ = 0;
  std::int64_t returned_ns_ = 0;  // when the last batch was handed out; 0: not inside an epoch
  meter::WaitSplit wait_;
  meter::StageTotals fetch_base_, prep_base_;  // counters at the last reset
  storage::StoreFigures store_base_;
};

}  // namespace stoker::loader
