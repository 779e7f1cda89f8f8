// Units whose bytes are there and whose batch has a slab, or whose rows are to be measured: they wait for a worker,
// first in first out. The border between reading and preparing. Every call but wake() is made with Signals::mutex held.
#pragma once

#include <cstddef>
#include <cstdint>

#include "stoker/loader/pending.h"
#include "stoker/loader/signals.h"
#include "stoker/meter/counters.h"

namespace stoker::loader {

class WorkQueue {
 public:
  // Holds at most `units`. `is_inline`: the consumer is the only worker.
  WorkQueue(std::size_t units, bool is_inline, int active, Signals& signals);
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void push_locked(Unit& unit) noexcept;
  Unit* pop_locked() noexcept;  // null: there is none
  bool is_empty_locked() const noexcept { return queue_.empty(); }
  std::size_t size_locked() const noexcept { return queue_.size(); }

  // After units were pushed or popped: their rows count from `now_ns` on.
  void note_depth_locked(std::int64_t now_ns) noexcept { depth_.change(now_ns, rows_); }
  void restart_depth_locked(std::int64_t now_ns) noexcept { depth_.start(now_ns, rows_); }
  meter::DepthMeter::Depth depth_locked(std::int64_t now_ns) const noexcept { return depth_.read(now_ns); }

  // Workers that exist, and how many of them may work; the others rest.
  std::size_t workers_locked() const noexcept { return workers_; }
  void add_worker_locked() noexcept { ++workers_; }
  int active_locked() const noexcept { return active_; }
  void set_active_locked(int workers) noexcept { active_ = workers; }
  bool all_may_work_locked() const noexcept { return active_ >= static_cast<int>(workers_); }

  // One unit was pushed. Called without the lock; `all_may_work` as it was when the unit was pushed.
  void wake(bool all_may_work) noexcept;

 private:
  Signals& signals_;
  const bool is_inline_;
  UnitQueue queue_;
  std::uint64_t rows_ = 0;
  std::size_t workers_ = 0;
  int active_ = 1;
  meter::DepthMeter depth_;
};

}  // namespace stoker::loader
