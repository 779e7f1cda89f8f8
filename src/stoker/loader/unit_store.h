// The units of work of an engine and the memory of their bytes: units, the room for encoded bytes, and sweeps. All are
// made once; nothing is allocated while batches are made. Safe from any thread, with the locks named at each call.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "stoker/loader/byte_room.h"
#include "stoker/loader/job.h"
#include "stoker/loader/pending.h"
#include "stoker/loader/reader_bell.h"
#include "stoker/loader/signals.h"
#include "stoker/loader/sweep.h"
#include "stoker/loader/work_queue.h"

namespace stoker::loader {

class UnitStore {
 public:
  UnitStore(const Job& job, WorkQueue& work, ReaderBell& bell, Signals& signals);
  UnitStore(const UnitStore&) = delete;
  UnitStore& operator=(const UnitStore&) = delete;

  // A unit without rows, for those of `pending` from `first_row` on; null: all are out. Takes the lock.
  Unit* take(Pending& pending, std::uint64_t first_row);
  // Takes room for the bytes of a unit. False: there is none now. In the order of the plan: Planner::mutex_ is held.
  bool take_room(Unit& unit);
  // An empty sweep; null: all are in use. Takes the lock.
  Sweep* take_sweep();

  // The unit ends: its room and the unit are free again, and threads that wait for either are woken. Takes the lock.
  void retire(Unit& unit);
  // One user of a sweep fewer. True: nobody uses it any more, and it can be filled again. Takes the lock then.
  bool leave(Sweep& sweep);
  // A unit or sweep that was planned and never read.
  void free_locked(Unit& unit) noexcept;
  void free_locked(Sweep& sweep) noexcept { free_sweeps_.push_back(&sweep); }

  std::uint64_t out_locked() const noexcept { return out_; }  // units taken and not yet free
  const std::vector<std::unique_ptr<Unit>>& all_locked() const noexcept { return units_; }
  std::uint64_t memory_bytes_locked() const noexcept;  // of encoded bytes, whether in use or not
  void drop_memory_locked() noexcept;                  // once nobody reads any more

 private:
  Signals& signals_;
  ReaderBell& bell_;
  WorkQueue& work_;
  const std::uint64_t sweep_bytes_;
  std::unique_ptr<ByteRoom> room_;
  std::vector<std::unique_ptr<Sweep>> sweeps_;
  std::vector<Sweep*> free_sweeps_;  // Signals::mutex, as all below
  std::vector<std::unique_ptr<Unit>> units_;
  std::vector<Unit*> free_units_;
  std::uint64_t out_ = 0;
};

}  // namespace stoker::loader
