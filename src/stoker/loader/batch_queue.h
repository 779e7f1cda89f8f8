// The batches in the making, in their order: opened by the planner, filled by readers and workers, taken by the
// consumer. Gives slabs to batches, first come first served, and tells the consumer when a batch is ready.
// Safe from any thread: a call either takes Signals::mutex itself, or its name ends with `_locked`.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "stoker/loader/job.h"
#include "stoker/loader/pending.h"
#include "stoker/loader/reader_bell.h"
#include "stoker/loader/signals.h"
#include "stoker/loader/slabs.h"
#include "stoker/loader/work_queue.h"
#include "stoker/meter/counters.h"

namespace stoker::loader {

class BatchQueue {
 public:
  BatchQueue(const Job& job, WorkQueue& work, ReaderBell& bell, Signals& signals);
  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  // Planner: the consumer stands in this epoch.
  void begin(std::uint64_t epoch);
  // Read-ahead stops at the end of the next epoch, so that a later epoch sees files that changed. Only the batches of
  // prefetch_factor may go further. True: no batch of `epoch` is opened now.
  bool is_far_ahead(std::uint64_t epoch);
  // Planner: one more batch, which comes after all others. Null: as many as may be are in the making, or it is too far
  // ahead.
  struct Place {
    std::uint64_t serial = 0, epoch = 0, step = 0, position_after = 0;
    dataset::BatchRange range;
    std::vector<std::uint64_t>* given = nullptr;  // see Pending; moved from where a batch is opened
  };
  Pending* open(const Place& place);  // null: there is no room for one more yet
  bool has_slab(const Pending& pending);

  // Readers and workers.
  Slot slot_of(const Pending& pending, std::uint64_t row) const noexcept;  // of a batch that has a slab
  void unit_read(Unit& unit, std::int64_t now_ns);            // to a worker, or to wait for the batch's slab
  void unit_measured(Unit& unit, std::uint64_t longest);      // its rows' lengths are known now
  void rows_finished(Pending& pending, std::uint64_t count);  // the last ones make the batch ready
  Unit* next_unit_locked();                                   // for a worker; null: there is none
  void assign_slabs_locked();                                 // call when a slab may have become free

  // The consumer.
  Pending* front_locked() const noexcept { return pendings_.empty() ? nullptr : pendings_.front(); }
  BatchPtr hand_out_front_locked();  // of a batch that is ready; it stays the front
  void drop_front_locked();          // after it was handed out
  void check_room_locked();          // throws Error where the consumer itself holds all that the next batch needs
  const std::optional<Error>& fatal_locked() const noexcept { return fatal_; }  // no slab could be had
  std::uint64_t ready_locked() const noexcept { return ready_; }

  // To leave an epoch: abandon all, wait until every unit is free, release.
  void abandon_locked();
  void unpark_locked();  // units that wait for a slab go to the workers, who give them back
  // Unlocks while slabs are released, since that calls back, and may ask Python for the stream.
  void release_locked(std::unique_lock<std::mutex>& lock);

  void restart_depth_locked(std::int64_t now_ns) noexcept { depth_.start(now_ns, ready_); }
  meter::DepthMeter::Depth depth_locked(std::int64_t now_ns) const noexcept { return depth_.read(now_ns); }
  std::uint64_t slabs_held_locked() const;  // by the consumer
  SlabPool& pool() const noexcept { return *pool_; }

 private:
  bool is_far_ahead_locked(std::uint64_t epoch) const noexcept;
  std::uint64_t slab_bytes_of(const Pending& pending) const noexcept;  // of a measured batch
  std::uint64_t roomy_bytes_of(const Pending& pending) const noexcept;
  void close(Pending& pending);
  void make_ready_locked(Pending& pending);

  const Job& job_;
  WorkQueue& work_;
  ReaderBell& bell_;
  Signals& signals_;
  std::shared_ptr<SlabPool> pool_;

  // Signals::mutex.
  std::vector<std::unique_ptr<Pending>> all_;
  std::vector<Pending*> free_;
  std::deque<Pending*> pendings_;    // by serial
  std::uint64_t epoch_ = 0;          // of the batch that was handed out last, or in which the consumer begins
  std::uint64_t slabs_filling_ = 0;  // assigned to batches not yet delivered
  std::uint64_t ready_ = 0;
  std::optional<Error> fatal_;
  meter::DepthMeter depth_;  // of ready batches
};

}  // namespace stoker::loader
