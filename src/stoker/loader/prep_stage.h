// The prep stage: workers take units from the queue and turn the bytes of each row into its place in the slab. What
// cannot be made is dealt with by policy (on_error). A worker holds no lock while it decodes.
// The engine starts and ends the workers; with num_workers = 0 the consumer works, one unit at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "stoker/loader/bad_row.h"
#include "stoker/loader/batch_queue.h"
#include "stoker/loader/job.h"
#include "stoker/loader/kind.h"
#include "stoker/loader/seek_store.h"
#include "stoker/loader/unit_store.h"
#include "stoker/loader/work_queue.h"
#include "stoker/loader/working_memory.h"
#include "stoker/meter/counters.h"

namespace stoker::loader {

class PrepStage {
 public:
  // `seek` may be null: places in JPEG files are not noted. Borrows the parts.
  PrepStage(const Job& job, WorkQueue& work, BatchQueue& batches, UnitStore& units, SeekStore* seek, Chunks chunks,
            Signals& signals);
  PrepStage(const PrepStage&) = delete;
  PrepStage& operator=(const PrepStage&) = delete;

  // Up to `workers` exist afterwards. Throws std::system_error where no more threads can be had.
  void add_workers_locked(int workers);
  // The consumer makes the rows of one unit.
  void work_inline(Unit& unit) noexcept;

  void stop_waiting() noexcept { working_.stop(); }  // workers that wait for working memory give up
  void join();                                       // after Signals::stopping was set
  void drop_memory_locked() noexcept;                // once joined

  void add_to(meter::StageTotals& totals) const noexcept;  // Signals::mutex is held
  const WorkingMemory& working_memory() const noexcept { return working_; }

 private:
  struct alignas(64) Worker {
    std::thread thread;
    meter::StageCounters counters;
    Workspace space;
    Waits waits;                           // of the unit in hand
    std::vector<storage::Location> parts;  // of the row in hand, where rows have several
    std::vector<codec::Bytes> part_bytes;  // and their bytes, where the kind takes them as they lie
  };
  using TakeSample = std::function<RowResult(std::uint64_t index, codec::Bytes bytes)>;

  void loop(Worker& self, int number);
  bool process(Unit& unit, Worker& self) noexcept;
  void process_rows(Unit& unit, Worker& self);
  void measure_rows(Unit& unit, Worker& self);
  void make_rows(Unit& unit, Worker& self);
  RowResult make_row(const Pending& pending, std::uint64_t row, std::uint64_t index, codec::Bytes bytes,
                     std::uint64_t& length, Worker& self);
  template <typename Make>
  RowResult make_with_room(Worker& self, const Make& make);
  template <typename Take>
  RowResult with_bytes(Unit& unit, std::uint32_t i, Worker& self, const Take& take);
  bool is_stale(const Unit& unit, std::uint32_t i) const noexcept;
  bool fits_batch(std::uint64_t length) const noexcept;

  // What becomes of a bad row.
  void row_failed(Pending& pending, std::uint64_t row, BadRow bad, Worker& self);
  void make_zero(Pending& pending, std::uint64_t row);
  bool try_replacements(std::uint64_t epoch, std::uint64_t position, Worker& self, const TakeSample& take);
  bool replace_row(Pending& pending, std::uint64_t row, Worker& self);

  const Job& job_;
  WorkQueue& work_;
  BatchQueue& batches_;
  UnitStore& units_;
  SeekStore* const seek_;
  const Chunks chunks_;
  Signals& signals_;
  WorkingMemory working_;
  std::vector<std::unique_ptr<Worker>> workers_;  // Signals::mutex
  Worker consumer_;                               // num_workers = 0
};

}  // namespace stoker::loader
