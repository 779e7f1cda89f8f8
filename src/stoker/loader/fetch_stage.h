// The fetch stage: I/O threads claim rows from the planner, keep many reads in flight, and hand read units over to the
// batch queue. Rows are read one by one (fetch_stage.cc), in several parts (fetch_parts.cc), or many at a time
// (fetch_sweeps.cc). What an I/O thread has under way belongs to it alone; the stage has no lock of its own.
// start(), wake(), join() and cancel_reads() belong to the engine, in this order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "stoker/loader/batch_queue.h"
#include "stoker/loader/job.h"
#include "stoker/loader/part_layout.h"
#include "stoker/loader/planner.h"
#include "stoker/loader/reader_bell.h"
#include "stoker/loader/row_bytes.h"
#include "stoker/loader/unit_store.h"
#include "stoker/loader/use_forecast.h"
#include "stoker/meter/counters.h"
#include "stoker/storage/fetcher.h"
#include "stoker/storage/ram_store.h"

namespace stoker::loader {

class FetchStage {
 public:
  using Fetchers = std::vector<std::unique_ptr<storage::Fetcher>>;
  // One thread for each fetcher. `ram` keeps whole files as they are read; null: nothing is kept. `note` is called from
  // I/O threads, without any lock, with things worth saying once. Borrows the parts.
  FetchStage(const Job& job, Fetchers fetchers, const RowBytes& row_bytes, storage::RamStore* ram, Chunks chunks,
             Planner& planner, BatchQueue& batches, UnitStore& units, ReaderBell& bell, Signals& signals,
             std::function<void(const Text&)> note);
  FetchStage(const FetchStage&) = delete;
  FetchStage& operator=(const FetchStage&) = delete;

  void start();          // throws std::system_error where no more threads can be had
  void wake() noexcept;  // every I/O thread, to see Signals::stopping
  void join();
  void cancel_reads();  // ends what is in flight, before its memory goes

  void add_to(meter::StageTotals& totals) const noexcept;
  storage::StoreFigures store_figures_locked() const noexcept;  // Signals::mutex is held

 private:
  struct alignas(64) Reader {
    std::thread thread;
    meter::StageCounters counters;
    std::unique_ptr<storage::Fetcher> fetcher;  // changed with Signals::mutex held
    storage::StoreFigures ended;                // of a fetcher that is gone. Signals::mutex
    std::optional<UseForecast> forecast;        // none: nothing is cached
    std::optional<std::uint64_t> first_epoch;   // that it read for
    ReaderBell::Reader bell;
    Sweep* sweep = nullptr;  // not all of its reads are submitted yet
    Unit* parted = nullptr;  // not all parts of its row are submitted yet; next_part is next
    std::uint32_t next_part = 0;
    std::optional<PartLayout> part_layout;
    std::size_t part_offset = 0;  // of next_part in the row
  };

  // fetch_stage.cc
  void run(Reader& self) noexcept;
  void loop(Reader& self);
  void submit(Reader& self, Unit& unit);
  void complete(Reader& self, const storage::Fetched& fetched);
  void read_finished(Unit& unit, std::int64_t now_ns);
  std::uint64_t first_use(Reader& self, const Unit& unit, std::uint64_t bytes) const noexcept;
  bool was_handed_over(const storage::Location& where, std::span<std::byte> into, std::uint64_t first_used);
  static ReadFault fault_of(const storage::Fetched& fetched);

  // fetch_parts.cc
  void begin_parts(Reader& self, Unit& unit);
  void announce(const Row& row, const dataset::RowKey& key) const noexcept;
  void submit_parts(Reader& self);
  void complete_part(Reader& self, const storage::Fetched& fetched);
  void parts_finished(Reader& self, Unit& unit);

  // fetch_sweeps.cc
  bool submit_sweeps(Reader& self);
  void complete_sweep(Reader& self, const storage::Fetched& fetched);
  void read_pieces(Reader& self, Sweep::Read& read, const storage::Fetched& fetched);
  void finish_pieces(Reader& self, const Sweep::Read& read, codec::Bytes data);

  const Job& job_;
  const RowBytes& row_bytes_;
  storage::RamStore* const ram_;
  const Chunks chunks_;
  Planner& planner_;
  BatchQueue& batches_;
  UnitStore& units_;
  ReaderBell& bell_;
  Signals& signals_;
  const std::function<void(const Text&)> note_;
  std::vector<std::unique_ptr<Reader>> readers_;
};

}  // namespace stoker::loader
