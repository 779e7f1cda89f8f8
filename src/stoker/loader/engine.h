// The threads behind a Loader, composed of parts that each have a header and a test of their own. For one batch:
//   1. an I/O thread (FetchStage) claims rows in global order (Planner), takes room for their bytes (UnitStore), and
//      submits the reads;
//   2. read rows wait as units in the WorkQueue, or parked in the BatchQueue until their batch has a slab;
//   3. a worker (PrepStage) decodes and transforms each row into its place in the slab;
//   4. the worker that finishes the last row closes the batch and wakes the consumer (BatchQueue);
//   5. next() hands batches out by serial number; the slab comes back when the consumer drops it.
// Job says what is to be done, and divide_memory() what each part may hold. Figures and ErrorList count what happened.
// The engine itself is what remains: the consumer's place and waits, the way from one epoch to the next, and the end.
// signals.h has the lock that the parts share, and the order of all locks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "stoker/loader/batch_queue.h"
#include "stoker/loader/chunk_reader.h"
#include "stoker/loader/chunk_store.h"
#include "stoker/loader/error_list.h"
#include "stoker/loader/fetch_stage.h"
#include "stoker/loader/figures.h"
#include "stoker/loader/given_order.h"
#include "stoker/loader/job.h"
#include "stoker/loader/loader.h"
#include "stoker/loader/planner.h"
#include "stoker/loader/prep_stage.h"
#include "stoker/loader/reader_bell.h"
#include "stoker/loader/row_bytes.h"
#include "stoker/loader/signals.h"
#include "stoker/loader/unit_store.h"
#include "stoker/loader/watch.h"
#include "stoker/loader/work_queue.h"
#include "stoker/loader/worker_count.h"

namespace stoker::loader {

class Loader::Engine {
 public:
  Engine(dataset::DatasetPtr dataset, LoaderOptions options);
  // ~Loader closes first; where that fails, it keeps the engine.

  void start_epoch(std::uint64_t epoch, std::uint64_t position, const Interrupted& interrupted);
  BatchPtr next(const Interrupted& interrupted);
  void expect_steps(std::uint64_t steps);
  void give(std::vector<std::uint64_t> indices);
  void end_order();
  std::uint64_t steps_wanted() const;
  State state() const;
  void check_state(const State& state) const;
  void load_state(const State& state, const Interrupted& interrupted);
  bool keep_order(const State& state);
  dataset::Shuffle shuffle_of(std::uint64_t epoch) const;
  void set_num_workers(int workers);
  Stats stats() const;
  void reset_stats();
  std::vector<SampleError> errors() const;
  std::vector<Text> notes() const;
  void close(const Interrupted& interrupted);
  void leave_closing();            // after a close() that gave up: nobody will wait for the end
  void refuse_after_fork() const;  // throws in a forked child
  bool is_forked() const noexcept;

  const LoaderOptions& options() const noexcept { return job_.options; }
  std::uint64_t padding_bytes() const noexcept { return job_.padding_bytes; }
  const dataset::Dataset& dataset() const noexcept { return *job_.dataset; }
  const Recipe& recipe() const noexcept { return job_.recipe; }
  std::uint64_t epoch() const noexcept { return epoch_; }
  std::uint64_t steps() const { return job_.is_given() ? given_.steps() : order_.steps(); }

 private:
  // The parts that hold memory and threads. Made with the first epoch; a part uses those above it.
  struct Parts {
    Parts(const Job& job, GivenOrder& given, std::unique_ptr<storage::RamStore> ram_store,
          std::unique_ptr<SeekStore> seek_store, std::unique_ptr<ChunkStore> chunk_store,
          std::unique_ptr<ChunkReader> reader_of_chunks, FetchStage::Fetchers fetchers, Signals& signals,
          std::function<void(const Text&)> note);

    std::unique_ptr<storage::RamStore> ram;     // storage=ram; else null
    std::unique_ptr<SeekStore> seek;            // null: places in JPEG files are not noted
    std::unique_ptr<ChunkStore> chunks;         // null: decoded chunks of volumes are not kept
    std::unique_ptr<ChunkReader> chunk_reader;  // null: workers read the chunks of volumes
    ReaderBell bell;
    WorkQueue work;
    UnitStore units;
    BatchQueue batches;
    RowBytes row_bytes;
    Planner planner;
    FetchStage fetch;
    PrepStage prep;
  };

  // What holds the engine up, and what to do about it.
  struct Delay {
    std::string text, hint;
  };

  // Held while next() or start_epoch() runs: one thread consumes, and close() waits for it.
  class Consuming {
   public:
    explicit Consuming(Engine& engine);
    ~Consuming();
    Consuming(const Consuming&) = delete;
    Consuming& operator=(const Consuming&) = delete;

   private:
    Engine& engine_;
  };

  // engine.cc: threads and figures
  void start_threads();
  FetchStage::Fetchers make_fetchers(bool reads_files);
  void note_once(const Text& note);
  void add_stages_locked(Stats& stats) const;

  // epochs.cc: from one epoch to the next, and the end
  void enter_epoch(std::uint64_t epoch, std::uint64_t position, const Interrupted& interrupted);
  void drain(const Interrupted& interrupted);
  void plan_from_here();
  void end_threads(std::thread::id caller);
  void join_threads();

  // consumer.cc: the thread inside next()
  void check_open_locked() const;
  void check_given() const;
  bool is_over() const;  // the epoch has no further batch
  void await_batch_locked(std::unique_lock<std::mutex>& lock, const Interrupted& interrupted);
  void check_batch_locked(Pending& pending);
  void end_planning_at(std::uint64_t serial);
  void list_errors_locked(Pending& pending, bool is_handed_out);
  Watch watch(const Interrupted& interrupted) const noexcept;
  void wait_locked(std::unique_lock<std::mutex>& lock, Watch& watch);
  void ask_locked(std::unique_lock<std::mutex>& lock, Watch& watch);
  Delay delay_locked() const;
  Delay delay_of_drain_locked() const;
  Delay delay_of_row(const Pending& pending, std::uint64_t row, const std::string& waits) const;

  Job job_;
  const std::uint64_t fork_generation_;
  mutable Signals signals_;
  std::unique_ptr<Parts> parts_;  // null before the first epoch. Set with the lock held, by the consumer

  // All below: Signals::mutex, for what other threads than the consumer read.
  std::optional<WorkerCount> auto_workers_;  // none: the user said how many
  Figures figures_;
  ErrorList errors_;
  bool closed_ = false;
  bool draining_ = false;     // start_epoch() gave up before the reads of the epoch before had ended
  bool ended_ = false;        // closed, and every thread is joined
  std::thread::id consumer_;  // the thread inside next() or start_epoch(), if any
  std::thread closer_;        // joins the others, so that close() can give up waiting for them
  enum class Ending : std::uint8_t { reads, workers, others } ending_ = Ending::others;  // what it waits for

  // The consumer's place.
  dataset::Order order_;
  GivenOrder given_;
  std::uint64_t epoch_ = 0, step_ = 0, position_ = 0, serial_ = 0;
  bool asked_ = false;                          // for a batch, since the epoch was entered
  bool order_changed_ = false;                  // by keep_order(): what was planned is of another order
  std::uint64_t end_serial_ = Planner::kNoEnd;  // expect_steps(): the consumer wants no batch from here on
};

}  // namespace stoker::loader
