#include "stoker/loader/fetch_stage.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "stoker/base/format_text.h"
#include "stoker/base/round.h"
#include "stoker/os/thread.h"

namespace stoker::loader {
namespace {

constexpr auto kLongWait = std::chrono::milliseconds(200);
constexpr std::size_t kReapedAtOnce = 64;

// Adds the time since the last charge to `sum`.
void charge(std::int64_t& since_ns, meter::Sum& sum) noexcept {
  const std::int64_t then = std::exchange(since_ns, meter::now_ns());
  sum.add(since_ns - then);
}

}  // namespace

FetchStage::FetchStage(const Job& job, Fetchers fetchers, const RowBytes& row_bytes, storage::RamStore* ram,
                       Chunks chunks, Planner& planner, BatchQueue& batches, UnitStore& units, ReaderBell& bell,
                       Signals& signals, std::function<void(const Text&)> note)
    : job_(job),
      row_bytes_(row_bytes),
      ram_(ram),
      chunks_(chunks),
      planner_(planner),
      batches_(batches),
      units_(units),
      bell_(bell),
      signals_(signals),
      note_(std::move(note)) {
  for (auto& fetcher : fetchers) {
    auto reader = std::make_unique<Reader>();
    reader->bell.fetcher = fetcher.get();
    reader->fetcher = std::move(fetcher);
    if (job_.cache) reader->forecast.emplace(job_);
    bell_.add(reader->bell);
    readers_.push_back(std::move(reader));
  }
}

void FetchStage::start() {
  for (auto& reader : readers_) {
    reader->thread = os::start_thread([this, &self = *reader] {
      (void)os::bind_thread(job_.numa_cpus);
      run(self);
    });
  }
}

void FetchStage::wake() noexcept {
  for (auto& reader : readers_) reader->fetcher->wake();
}

void FetchStage::join() {
  for (auto& reader : readers_) {
    if (reader->thread.joinable()) reader->thread.join();  // not so if it could not be started
  }
}

void FetchStage::cancel_reads() {
  for (auto& reader : readers_) {
    std::unique_ptr<storage::Fetcher> fetcher;
    {
      const std::scoped_lock lock(signals_.mutex);
      if (reader->fetcher) reader->ended = reader->fetcher->figures();
      fetcher = std::move(reader->fetcher);
    }
  }
}

storage::StoreFigures FetchStage::store_figures_locked() const noexcept {
  storage::StoreFigures sum;
  for (const auto& reader : readers_) sum += reader->fetcher ? reader->fetcher->figures() : reader->ended;
  return sum;
}

void FetchStage::add_to(meter::StageTotals& totals) const noexcept {
  for (const auto& reader : readers_) totals.add(reader->counters);
}

void FetchStage::submit(Reader& self, Unit& unit) {
  if (job_.many_parts) return begin_parts(self, unit);
  const dataset::Dataset& dataset = *job_.dataset;
  std::array<storage::Fetch, Unit::kMaxRows> fetches;
  thread_local std::vector<char> texts(std::size_t{Unit::kMaxRows} * storage::kLocationText);
  std::uint32_t count = 0;
  std::byte* at = unit.block.data;
  const auto number = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&unit));
  for (std::uint32_t i = 0; i < unit.rows; ++i) {
    if (unit.faults[i].too_large) continue;
    const Row& row = unit.pending->rows[unit.first_row + i];
    const codec::Bytes held =
        ram_ != nullptr ? row_bytes_.resident(row.index, dataset.location(row.index)) : codec::Bytes{};
    if (!held.empty()) {
      if (unit.in_place) {
        std::memcpy(batches_.slot_of(*unit.pending, unit.first_row + i).outputs[0], held.data(), held.size());
      }
      unit.bytes[i] = held;
      std::atomic_ref(unit.pending->rows[unit.first_row + i].arrived).store(true, std::memory_order_relaxed);
      self.counters.items.add(1);
      self.counters.bytes.add(static_cast<std::int64_t>(held.size()));
      continue;
    }
    const storage::Location where =
        dataset.locate(row.index, {texts.data() + i * storage::kLocationText, storage::kLocationText});
    const std::optional<storage::Fetch> found =
        storage::fetch_of(where, number + i);  // units are aligned to more than kMaxRows
    if (!found) {
      unit.faults[i].error_number = ENAMETOOLONG;
      unit.has_fault = true;
      continue;
    }
    storage::Fetch& fetch = fetches[count];
    fetch = *found;
    if (self.forecast) fetch.use = self.forecast->of(unit.pending->epoch, row.position, row.index);
    if (unit.in_place) {
      fetch.into = {batches_.slot_of(*unit.pending, unit.first_row + i).outputs[0], where.bytes};
    } else if (at != nullptr && !storage::has_view(where)) {
      const std::size_t room = round_up(self.fetcher->buffer_bytes(where.bytes), row_bytes_.alignment());
      fetch.into = {at, room};
      at += room;
    }
    if (was_handed_over(where, fetch.into, first_use(self, unit, where.bytes))) {
      unit.bytes[i] = fetch.into.first(where.bytes);
      self.counters.items.add(1);
      self.counters.bytes.add(static_cast<std::int64_t>(where.bytes));
      continue;
    }
    ++count;
  }
  unit.reads_left = count;
  if (count == 0) {
    read_finished(unit, meter::now_ns());
    return;
  }
  self.fetcher->submit({fetches.data(), count});
}

// Of `bytes`, those that count as used for the first time: what is read ahead for the next epoch does not.
std::uint64_t FetchStage::first_use(Reader& self, const Unit& unit, std::uint64_t bytes) const noexcept {
  if (!job_.hand_over) return 0;
  if (!self.first_epoch) self.first_epoch = unit.pending->epoch;
  return unit.pending->epoch == *self.first_epoch ? bytes : 0;
}

// Takes bytes that opening the data set has read, if it has.
bool FetchStage::was_handed_over(const storage::Location& where, std::span<std::byte> into, std::uint64_t first_used) {
  return job_.hand_over && where.source != nullptr && where.bytes > 0 && into.size() >= where.bytes &&
         job_.hand_over->hand_out(*where.source, where.offset, into.first(where.bytes), first_used);
}

ReadFault FetchStage::fault_of(const storage::Fetched& fetched) {
  ReadFault fault;
  fault.error_number = fetched.error_number;
  fault.failure = fetched.failure;
  fault.size_changed = fetched.code == storage::FetchCode::size_changed;
  fault.actual_bytes = fetched.actual_bytes;
  return fault;
}

void FetchStage::complete(Reader& self, const storage::Fetched& fetched) {
  Unit& unit = *reinterpret_cast<Unit*>(fetched.tag & ~std::uint64_t{alignof(Unit) - 1});
  const auto i = static_cast<std::uint32_t>(fetched.tag & (alignof(Unit) - 1));
  switch (fetched.code) {
    case storage::FetchCode::ok:
      unit.bytes[i] = fetched.data;
      if (ram_ != nullptr) {
        const std::uint64_t index = unit.pending->rows[unit.first_row + i].index;
        if (job_.keeps_samples()) ram_->keep_file(job_.dataset->stored(index), fetched.data);
      }
      self.counters.bytes.add(static_cast<std::int64_t>(fetched.data.size()));
      break;
    case storage::FetchCode::failed:
    case storage::FetchCode::size_changed:
      unit.faults[i] = fault_of(fetched);
      unit.has_fault = true;
      break;
  }
  self.counters.items.add(1);
  std::atomic_ref(unit.pending->rows[unit.first_row + i].arrived).store(true, std::memory_order_relaxed);
  if (--unit.reads_left == 0) read_finished(unit, meter::now_ns());
}

void FetchStage::read_finished(Unit& unit, std::int64_t now_ns) {
  Pending& pending = *unit.pending;
  for (std::uint32_t i = 0; i < unit.rows; ++i) {
    std::atomic_ref(pending.times[unit.first_row + i].read_ns).store(now_ns, std::memory_order_relaxed);
  }
  signals_.progress.fetch_add(unit.rows, std::memory_order_relaxed);
  if (!unit.in_place || unit.has_fault) return batches_.unit_read(unit, now_ns);
  for (std::uint32_t i = 0; i < unit.rows; ++i) {
    std::atomic_ref(pending.times[unit.first_row + i].done_ns).store(now_ns, std::memory_order_relaxed);
  }
  batches_.rows_finished(pending, unit.rows);
  units_.retire(unit);
}

void FetchStage::loop(Reader& self) {
  storage::Fetcher& fetcher = *self.fetcher;
  const bool sweeps = job_.memory.sweep != 0;
  std::vector<storage::Fetched> finished(kReapedAtOnce);
  bool said_direct = job_.options.storage != storage::Storage::direct;
  std::int64_t since = meter::now_ns();
  const auto reap = [&](std::chrono::nanoseconds timeout) {
    const std::size_t count = fetcher.wait(finished, timeout);
    charge(since, self.counters.input_wait_ns);
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_one_row = (finished[i].tag & kReadTag) == 0;
      if (is_one_row) {
        complete(self, finished[i]);
      } else if (job_.many_parts) {
        complete_part(self, finished[i]);
      } else {
        complete_sweep(self, finished[i]);
      }
    }
  };
  while (true) {
    std::uint64_t rings = 0;
    {
      const std::scoped_lock lock(signals_.mutex);
      if (signals_.stopping) return;
      rings = bell_.rings_locked();
    }
    bool refused = sweeps && !submit_sweeps(self);
    while (!sweeps && fetcher.room() >= job_.memory.unit_rows) {
      if (self.parted != nullptr) {
        submit_parts(self);
        continue;
      }
      self.bell.refused.store(true, std::memory_order_relaxed);
      Unit* const unit = planner_.claim();
      if (unit == nullptr) {
        refused = true;
        break;
      }
      submit(self, *unit);
      // Rows in the page cache are in place as soon as they are asked for; claiming more first would take more slabs.
      if (job_.in_place) reap(std::chrono::nanoseconds::zero());
    }
    if (!refused) self.bell.refused.store(false, std::memory_order_relaxed);
    charge(since, self.counters.busy_ns);
    if (fetcher.in_flight() == 0) {
      if (!refused) continue;
      bell_.wait(rings, kLongWait);
      charge(since, self.counters.room_wait_ns);
      continue;
    }
    reap(kLongWait);
    if (!said_direct && fetcher.direct_refused()) {
      said_direct = true;
      note_(format_text("{}: this file system refuses O_DIRECT; files are read through the page cache",
                        option("storage", "direct")));
    }
  }
}

void FetchStage::run(Reader& self) noexcept {
  try {
    loop(self);
  } catch (const Error& error) {
    signals_.fail_for_good(error);
  } catch (const std::exception& error) {
    signals_.fail_for_good(Error(ErrorKind::internal, std::string("an I/O thread failed: ") + error.what()));
  }
}

}  // namespace stoker::loader
