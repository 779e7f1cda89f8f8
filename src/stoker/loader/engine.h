// The threads behind a Loader. The order of things, for one batch:
//   1. an I/O thread claims rows in global order (plan_mutex_), takes room for their bytes, submits the reads;
//   2. read rows wait as units in queue_ (or parked, until their batch has a slab);
//   3. a worker decodes and transforms each row into its place in the slab;
//   4. the worker that finishes the last row closes the batch and wakes the consumer;
//   5. next() hands batches out by serial number; the slab comes back when the consumer drops it.
// Room is taken in global order in steps 1 and 2, so whoever waits for room waits for earlier batches only: no
// deadlock. Locks: plan_mutex_ before mutex_; nothing is locked while decoding or waiting for I/O.
// The consumer (the thread inside next() or start_epoch()) waits on consumer_cv_ only, whatever it waits for. Whoever
// makes a batch ready, queues a unit, retires the last unit, stores a failure or closes the loader notifies it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "stoker/loader/allowance.h"
#include "stoker/loader/byte_room.h"
#include "stoker/loader/loader.h"
#include "stoker/loader/part_layout.h"
#include "stoker/loader/pending.h"
#include "stoker/loader/recipe.h"
#include "stoker/loader/seek_store.h"
#include "stoker/loader/slabs.h"
#include "stoker/loader/sweep.h"
#include "stoker/loader/working_memory.h"
#include "stoker/storage/fetcher.h"
#include "stoker/storage/ram_store.h"

namespace stoker::loader {

inline constexpr auto kAskEvery = std::chrono::milliseconds(50);  // a wait: whether to give up
inline constexpr std::uint64_t kSweeps = 3;        // one being read, one waiting for the disk, one with the workers
inline constexpr std::uint64_t kMostAhead = 2048;  // units in a sweep, and batches in the making

class Loader::Engine {
 public:
  Engine(dataset::DatasetPtr dataset, LoaderOptions options);
  // ~Loader closes first; where that fails, it keeps the engine.

  void start_epoch(std::uint64_t epoch, std::uint64_t position, const Interrupted& interrupted);
  BatchPtr next(const Interrupted& interrupted);
  State state() const;
  void check_state(const State& state) const;
  void load_state(const State& state, const Interrupted& interrupted);
  void set_num_workers(int workers);
  Stats stats() const;
  void reset_stats();
  std::vector<SampleError> errors() const;
  std::vector<Text> notes() const;
  void close(const Interrupted& interrupted);
  void leave_closing();            // after a close() that gave up: nobody will wait for the end
  void refuse_after_fork() const;  // throws in a forked child
  bool is_forked() const noexcept;

  const LoaderOptions& options() const noexcept { return options_; }
  const dataset::Dataset& dataset() const noexcept { return *dataset_; }
  const Recipe& recipe() const noexcept { return recipe_; }
  std::uint64_t epoch() const noexcept { return epoch_; }
  std::uint64_t steps() const noexcept { return order_->steps(); }

 private:
  struct alignas(64) Thread {
    std::thread thread;
    meter::StageCounters counters;
  };
  struct IoThread : Thread {
    std::unique_ptr<storage::Fetcher> fetcher;
    std::atomic<bool> refused{false};  // its last claim found no room: wake it when there is some
    Sweep* sweep = nullptr;            // not all of its reads are submitted yet
    Unit* parted = nullptr;            // not all parts of its row are submitted yet; next_part is next
    std::uint32_t next_part = 0;
    std::optional<PartLayout> part_layout;
    std::size_t part_offset = 0;  // of next_part in the row
  };
  struct Worker : Thread {
    Workspace space;
  };

  // One wait: when the caller was last asked whether to give up, and when the engine last made progress.
  struct Watch {
    explicit Watch(const Engine& engine, const Interrupted& asks);
    const Interrupted& interrupted;
    std::int64_t asked_ns, progress_ns;
    std::uint64_t progress;
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

  // engine.cc: sizes, threads
  void choose_blocks();
  Demand demand() const noexcept;
  void count_plans(const Demand& demand, std::uint64_t ahead);
  void divide_memory(bool sweeps);
  struct Sizes {
    std::uint64_t mean = 0, median = 0;
  };
  Sizes usual_bytes() const noexcept;
  bool reads_direct() const noexcept;
  std::uint64_t wanted_sweep(std::uint64_t row) const noexcept;
  void share_among_sweeps(std::uint64_t wanted, std::uint64_t batch_bytes);
  std::uint64_t choose_seek_step(std::uint64_t room);
  std::uint64_t choose_ram(std::uint64_t room);
  void fill_ram();
  std::uint64_t slab_bytes_for(std::uint64_t length) const noexcept;
  void start_threads();
  void add_worker_locked();
  dataset::Order make_order(std::uint64_t epoch, std::uint64_t position) const;

  // epochs.cc: from one epoch to the next, and the end
  void enter_epoch(std::uint64_t epoch, std::uint64_t position, const Interrupted& interrupted);
  void stop_planning();
  void drain(const Interrupted& interrupted);
  void plan_from_here();
  void release_pendings_locked(std::unique_lock<std::mutex>& lock);
  void end_threads(std::thread::id caller);
  void join_threads();

  // fetch_stage.cc
  void io_loop(IoThread& self);
  Unit* claim();
  const Row& plan_row(Pending& pending, std::uint64_t position, std::uint64_t index);
  struct Need {
    std::uint64_t bytes = 0;  // of the row
    std::uint64_t room = 0;   // that reading it takes
  };
  Need need_of(const Row& row, std::uint64_t epoch) const noexcept;
  Unit* plan_unit();
  Unit* take_unit(Pending& pending);
  bool open_pending();
  bool admit(Unit& unit);
  codec::Bytes resident(std::uint64_t index, const storage::Location& where) const noexcept;
  void submit(IoThread& self, Unit& unit);
  void complete(IoThread& self, const storage::Fetched& fetched);
  void read_finished(Unit& unit, std::int64_t now);
  void wake_readers() noexcept;
  void note_once(const Text& note);

  static ReadFault fault_of(const storage::Fetched& fetched);

  // fetch_parts.cc
  std::uint64_t encoded_bytes(std::uint64_t index) const noexcept;
  Need need_of_parts(const Row& row, std::uint64_t epoch) const noexcept;
  codec::Bytes held_part(const storage::Location& where) const noexcept;
  void begin_parts(IoThread& self, Unit& unit);
  void submit_parts(IoThread& self);
  void parts_finished(IoThread& self, Unit& unit);
  static void part_failed(const Part& part, ReadFault fault);
  void complete_part(IoThread& self, const storage::Fetched& fetched);
  static bool join_parts(std::span<const Part> parts, Scratch& scratch, codec::Bytes& whole);

  // fetch_sweeps.cc
  static bool is_joined(const storage::Fetched& fetched) noexcept;
  bool extend(Sweep& sweep);
  Sweep* claim_sweep();
  bool leave(Sweep& sweep);
  bool submit_sweeps(IoThread& self);
  void complete_sweep(IoThread& self, const storage::Fetched& fetched);
  void read_pieces(IoThread& self, Sweep::Read& read, const storage::Fetched& fetched);
  void finish_pieces(IoThread& self, const Sweep::Read& read, codec::Bytes data);

  // prep_stage.cc
  void work_loop(Worker& self, int number);
  Unit* pop_locked();
  bool process(Unit& unit, Worker& self) noexcept;
  void process_rows(Unit& unit, Worker& self);
  void fail_for_good(Error error) noexcept;
  void measure_rows(Unit& unit, Worker& self);
  void make_rows(Unit& unit, Worker& self);
  RowResult make_row(const Pending& pending, std::uint64_t row, std::uint64_t index, codec::Bytes bytes,
                     std::uint64_t& length, Worker& self);
  void row_failed(Pending& pending, std::uint64_t row, BadRow bad, Worker& self);
  BadRow describe(std::uint64_t index, const ReadFault& fault) const;
  BadRow describe(const RowResult& verdict, const Worker& self) const;
  void explain_need(BadRow& bad, std::string_view what, std::uint64_t bytes, std::uint64_t Allowance::*share,
                    std::uint64_t batch_bytes = 0) const;
  template <typename Take>
  RowResult with_bytes(Unit& unit, std::uint32_t i, Worker& self, const Take& take);
  bool is_stale(const Unit& unit, std::uint32_t i) const noexcept;
  bool fits_batch(std::uint64_t length) const noexcept;
  using TakeSample = std::function<RowResult(std::uint64_t index, codec::Bytes bytes)>;
  bool try_replacements(std::uint64_t epoch, std::uint64_t position, Worker& self, const TakeSample& take);
  bool replace_row(Pending& pending, std::uint64_t row, Worker& self);
  template <typename Make>
  RowResult make_with_room(Worker& self, const Make& make);
  Slot slot_of(const Pending& pending, std::uint64_t row) const noexcept;
  void rows_finished(Pending& pending, std::uint64_t count);
  void close_batch(Pending& pending);
  void retire(Unit& unit);
  void free_unit_locked(Unit& unit);
  void assign_slabs_locked();

  // consumer.cc
  BatchPtr deliver_locked(Pending& pending);
  void check_consumer_locked();
  void list_errors_locked(Pending& pending);
  void wait_locked(std::unique_lock<std::mutex>& lock, Watch& watch);
  void ask_locked(std::unique_lock<std::mutex>& lock, Watch& watch);
  void check_progress_locked(Watch& watch, std::int64_t now) const;
  Delay delay_locked() const;
  Delay delay_of_row(const Pending& pending, std::uint64_t row, const char* waits) const;
  SampleError named(SampleError error) const;
  void adjust_workers_locked(const meter::WaitSplit& wait, std::int64_t compute_ns);
  Pending* front_locked() const noexcept { return pendings_.empty() ? nullptr : pendings_.front(); }
  void check_error_limit_locked(Pending& pending);
  double allowed_errors() const noexcept;  // per epoch, where max_errors is set
  std::uint64_t losses() const noexcept { return dataset_->facts().losses.size(); }
  void count_losses();  // throws where they are more than max_errors

  dataset::DatasetPtr dataset_;
  LoaderOptions options_;
  Recipe recipe_;
  std::shared_ptr<DeviceRuntime> device_;
  std::vector<Text> notes_;
  const std::uint64_t fork_generation_;
  const std::int64_t constructed_ns_;

  // Sizes, fixed at construction.
  Allowance allowance_;
  std::uint64_t slab_limit_ = 0, ring_bytes_ = 0, working_limit_ = 0;
  std::uint64_t max_units_ = 0;
  SeekOptions seek_options_;
  std::uint64_t ram_limit_ = 0;
  std::uint64_t max_pendings_ = 0;
  std::uint32_t unit_rows_ = 1;
  std::uint64_t unit_bytes_ = 0;
  bool in_place_ = false;
  bool many_parts_ = false;        // rows have several parts
  std::uint64_t sweep_bytes_ = 0;  // 0: rows are read one by one
  std::uint64_t sweep_count_ = 0, first_sweep_bytes_ = 0;
  std::uint64_t window_rows_ = 0;  // shuffled blocks: this rank's part of those that are mixed
  int max_workers_ = 1;
  bool auto_workers_ = false;
  bool inline_ = false;  // num_workers = 0: the consumer decodes

  std::shared_ptr<SlabPool> pool_;
  std::unique_ptr<ByteRoom> room_;
  std::unique_ptr<WorkingMemory> working_;
  std::unique_ptr<storage::RamStore> ram_;  // storage=ram
  std::unique_ptr<SeekStore> seek_;         // null: places in JPEG files are not noted
  std::vector<std::unique_ptr<IoThread>> io_threads_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Worker> consumer_worker_;  // num_workers = 0
  std::size_t fetch_alignment_ = 64;

  // What comes next to be read. plan_mutex_.
  std::mutex plan_mutex_;
  bool paused_ = true;
  std::optional<dataset::Order> plan_order_;
  std::uint64_t plan_epoch_ = 0, plan_step_ = 0, plan_serial_ = 0;
  Pending* plan_pending_ = nullptr;
  std::uint64_t plan_row_ = 0;
  Unit* stalled_ = nullptr;      // planned, but there was no room
  Sweep* plan_sweep_ = nullptr;  // being filled
  std::uint64_t sweep_most_ = 0;

  // What is in flight. mutex_.
  mutable std::mutex mutex_;
  std::condition_variable io_cv_, work_cv_;
  std::condition_variable consumer_cv_;  // the consumer waits here
  std::condition_variable ended_cv_;     // close() waits here: for the consumer, and for the threads to end
  std::deque<Pending*> pendings_;        // by serial
  std::vector<std::unique_ptr<Pending>> pending_pool_;
  std::vector<Pending*> free_pendings_;
  std::vector<std::unique_ptr<Unit>> unit_pool_;
  std::vector<Unit*> free_units_;
  std::vector<std::unique_ptr<Sweep>> sweeps_;
  std::vector<Sweep*> free_sweeps_;
  UnitQueue queue_;
  std::uint64_t queued_rows_ = 0;
  std::uint64_t units_out_ = 0;      // claimed and not yet retired
  std::uint64_t slabs_filling_ = 0;  // assigned to batches not yet delivered
  std::uint64_t admissions_ = 0;     // changes when there may be room again
  int active_workers_ = 1;
  std::atomic<bool> stopping_{false};  // changed under mutex_
  bool closed_ = false, started_ = false;
  bool draining_ = false;  // start_epoch() gave up before the reads of the epoch before had ended
  bool ended_ = false;     // closed, and every thread is joined
  std::optional<Error> fatal_;
  std::optional<Error> broken_;  // a thread could not be started, or has failed: for good
  std::thread::id consumer_;     // the thread inside next() or start_epoch(), if any
  std::thread closer_;           // joins the others, so that close() can give up waiting for them
  enum class Ending : std::uint8_t { reads, workers, others } ending_ = Ending::others;  // what it waits for
  std::atomic<std::uint64_t> progress_{0};

  // The consumer's place. mutex_ for what others read.
  std::optional<dataset::Order> order_;
  std::uint64_t epoch_ = 0, step_ = 0, position_ = 0, serial_ = 0;
  bool asked_ = false;              // for a batch, since the epoch was entered
  std::int64_t returned_ns_ = 0;    // when the last batch was handed out; 0: not inside an epoch
  std::deque<SampleError> errors_;  // the first ones, without names
  std::uint64_t errors_bytes_ = 0;
  std::uint64_t error_count_ = 0;
  bool said_listed_ = false;
  std::uint64_t epoch_errors_ = 0;

  // Figures. mutex_.
  meter::DepthMeter ready_depth_, bytes_depth_;
  std::uint64_t ready_batches_ = 0;
  std::uint64_t samples_ = 0, batches_ = 0, decoded_bytes_ = 0;
  std::int64_t compute_ns_ = 0, first_batch_ns_ = 0;
  std::int64_t run_started_ns_ = 0, run_ended_ns_ = 0;
  meter::WaitSplit wait_;
  meter::StageTotals fetch_base_, prep_base_;  // counters at the last reset
  std::uint64_t scratch_peak_ = 0;
  std::int64_t window_compute_ns_ = 0;
  meter::WaitSplit window_wait_;
  std::uint64_t window_batches_ = 0;
};

}  // namespace stoker::loader
