// The fetch stage: I/O threads claim rows in global order, take room for their bytes and keep many reads in flight.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "stoker/base/format_text.h"
#include "stoker/base/round.h"
#include "stoker/loader/engine.h"

namespace stoker::loader {
namespace {

constexpr auto kLongWait = std::chrono::milliseconds(200);

}  // namespace

void Loader::Engine::wake_readers() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    ++admissions_;
  }
  io_cv_.notify_all();
  for (auto& io : io_threads_) {
    if (io->refused.exchange(false, std::memory_order_relaxed)) io->fetcher->wake();
  }
}

// Opens the next batch of the plan, if there may be one more. plan_mutex_ is held.
bool Loader::Engine::open_pending() {
  while (plan_step_ == plan_order_->steps()) {
    dataset::Order next = make_order(plan_epoch_ + 1, 0);
    if (next.steps() == 0) return false;
    plan_order_.emplace(next);
    ++plan_epoch_;
    plan_step_ = 0;
  }
  const std::scoped_lock lock(mutex_);
  if (free_pendings_.empty()) return false;
  Pending* const pending = free_pendings_.back();
  free_pendings_.pop_back();
  pending->serial = plan_serial_++;
  pending->epoch = plan_epoch_;
  pending->step = plan_step_;
  pending->range = plan_order_->batch(plan_step_);
  pending->position_after = plan_order_->position_after(plan_step_);
  pending->rows.assign(pending->range.count, {});
  pending->times.assign(pending->range.count, {});
  pending->rows_left = pending->range.count;
  pending->rows_unmeasured = pending->range.count;
  pending->abandoned = false;
  pending->length = 0;
  pending->kept = 0;
  pending->ready = false;
  pending->errors.clear();
  pending->failure.reset();
  pendings_.push_back(pending);
  ++plan_step_;
  plan_pending_ = pending;
  plan_row_ = 0;
  assign_slabs_locked();
  if (pending->range.count == 0) {  // a rank without a share of the last step
    pending->ready = true;
    ready_depth_.change(meter::now_ns(), ++ready_batches_);
    consumer_cv_.notify_all();
  }
  return true;
}

// A unit for the plan's next rows, without any yet; null: all are out. plan_mutex_ is held.
Unit* Loader::Engine::take_unit(Pending& pending) {
  Unit* unit = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    if (free_units_.empty()) return nullptr;
    unit = free_units_.back();
    free_units_.pop_back();
    ++units_out_;
    unit->pending = &pending;
    unit->first_row = static_cast<std::uint32_t>(plan_row_);
  }
  unit->sweep = nullptr;
  unit->rows = 0;
  unit->block = {};
  unit->block_bytes = 0;
  unit->reads_left = 0;
  unit->measured = false;
  unit->has_fault = false;
  unit->in_place = in_place_;
  return unit;
}

// All that the data set knows of a row, looked up once: in a shuffled order each look is a cache miss.
const Row& Loader::Engine::plan_row(Pending& pending, std::uint64_t position, std::uint64_t index) {
  Row& row = pending.rows[plan_row_];
  row.position = position;
  row.valid = plan_row_ < pending.range.valid;
  row.index = index;
  row.id = dataset_->id(index);
  row.label = dataset_->label(index);
  return row;
}

Loader::Engine::Need Loader::Engine::need_of(const Row& row, std::uint64_t epoch) const noexcept {
  if (many_parts_) return need_of_parts(row, epoch);
  const storage::Location where = dataset_->location(row.index);
  const bool in_memory =
      in_place_ || (where.source != nullptr && !where.source->view().empty()) || !resident(row.index, where).empty();
  const storage::Fetcher& fetcher = *io_threads_.front()->fetcher;
  return {where.bytes, in_memory ? 0 : round_up(fetcher.buffer_bytes(where.bytes), fetch_alignment_)};
}

// The next rows of the plan as a unit without room yet. plan_mutex_ is held.
Unit* Loader::Engine::plan_unit() {
  while (plan_pending_ == nullptr || plan_row_ == plan_pending_->range.count) {
    if (!open_pending()) return nullptr;
  }
  Pending& pending = *plan_pending_;
  Unit* const unit = take_unit(pending);
  if (unit == nullptr) return nullptr;
  while (plan_row_ < pending.range.count && unit->rows < unit_rows_) {
    const std::uint64_t position = pending.range.first + plan_row_;
    const Row& row = plan_row(pending, position, plan_order_->sample(position));
    const Need need = need_of(row, pending.epoch);
    ReadFault fault;
    fault.too_large = need.bytes > allowance_.encoded_bytes;  // wherever it lies: every storage gives the same rows
    if (unit->rows > 0 && !fault.too_large && unit->block_bytes + need.room > unit_bytes_) break;
    if (unit->rows > 0 && in_place_ && (unit->rows + 1) * need.bytes > unit_bytes_) break;
    if (fault.too_large) {
      unit->has_fault = true;
      fault.actual_bytes = need.bytes;
    } else {
      unit->block_bytes += need.room;
    }
    unit->faults[unit->rows] = fault;
    unit->bytes[unit->rows] = {};
    ++unit->rows;
    ++plan_row_;
  }
  return unit;
}

// Takes room for the unit's bytes: in the room for encoded bytes, or in the batch's slab. plan_mutex_ is held.
bool Loader::Engine::admit(Unit& unit) {
  if (unit.in_place) {
    const std::scoped_lock lock(mutex_);
    return unit.pending->slab != nullptr;
  }
  if (unit.block_bytes == 0) return true;
  unit.block = room_->take(unit.block_bytes);
  return unit.block.data != nullptr;
}

Unit* Loader::Engine::claim() {
  const std::scoped_lock plan(plan_mutex_);
  if (paused_) return nullptr;
  Unit* const unit = stalled_ != nullptr ? std::exchange(stalled_, nullptr) : plan_unit();
  if (unit == nullptr) return nullptr;
  if (!admit(*unit)) {
    stalled_ = unit;
    return nullptr;
  }
  return unit;
}

// A sample's bytes where storage=ram has them; what was there once stays.
codec::Bytes Loader::Engine::resident(std::uint64_t index, const storage::Location& where) const noexcept {
  if (!ram_) return {};
  return where.source != nullptr ? ram_->find(*where.source, where.offset, where.bytes)
                                 : ram_->find_file(dataset_->stored(index), where.bytes);
}

void Loader::Engine::submit(IoThread& self, Unit& unit) {
  if (many_parts_) return begin_parts(self, unit);
  std::array<storage::Fetch, Unit::kMaxRows> fetches;
  thread_local std::vector<char> texts(std::size_t{Unit::kMaxRows} * storage::kLocationText);
  std::uint32_t count = 0;
  std::byte* at = unit.block.data;
  const auto number = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&unit));
  for (std::uint32_t i = 0; i < unit.rows; ++i) {
    if (unit.faults[i].too_large) continue;
    const Row& row = unit.pending->rows[unit.first_row + i];
    const codec::Bytes held = ram_ ? resident(row.index, dataset_->location(row.index)) : codec::Bytes{};
    if (!held.empty()) {
      if (unit.in_place) {
        std::memcpy(slot_of(*unit.pending, unit.first_row + i).outputs[0], held.data(), held.size());
      }
      unit.bytes[i] = held;
      self.counters.items.add(1);
      self.counters.bytes.add(static_cast<std::int64_t>(held.size()));
      continue;
    }
    storage::Fetch& fetch = fetches[count];
    fetch = {};
    fetch.where = dataset_->locate(row.index, {texts.data() + i * storage::kLocationText, storage::kLocationText});
    const storage::Location& where = fetch.where;
    if (where.has_name() && where.name == nullptr) {
      unit.faults[i].error_number = ENAMETOOLONG;
      unit.has_fault = true;
      continue;
    }
    fetch.tag = number + i;  // units are aligned to more than kMaxRows
    if (unit.in_place) {
      fetch.into = {slot_of(*unit.pending, unit.first_row + i).outputs[0], where.bytes};
    } else if (at != nullptr && (where.source == nullptr || where.source->view().empty())) {
      const std::size_t room = round_up(self.fetcher->buffer_bytes(where.bytes), fetch_alignment_);
      fetch.into = {at, room};
      at += room;
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

ReadFault Loader::Engine::fault_of(const storage::Fetched& fetched) {
  ReadFault fault;
  fault.error_number = fetched.error_number;
  fault.failure = fetched.failure;
  fault.size_changed = fetched.code == storage::FetchCode::size_changed;
  fault.actual_bytes = fetched.actual_bytes;
  return fault;
}

void Loader::Engine::complete(IoThread& self, const storage::Fetched& fetched) {
  Unit& unit = *reinterpret_cast<Unit*>(fetched.tag & ~std::uint64_t{alignof(Unit) - 1});
  const auto i = static_cast<std::uint32_t>(fetched.tag & (alignof(Unit) - 1));
  switch (fetched.code) {
    case storage::FetchCode::ok:
      unit.bytes[i] = fetched.data;
      if (ram_) {
        const std::uint64_t index = unit.pending->rows[unit.first_row + i].index;
        if (dataset_->location(index).source == nullptr) ram_->keep_file(dataset_->stored(index), fetched.data);
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
  if (--unit.reads_left == 0) read_finished(unit, meter::now_ns());
}

void Loader::Engine::read_finished(Unit& unit, std::int64_t now) {
  Pending& pending = *unit.pending;
  for (std::uint32_t i = 0; i < unit.rows; ++i) {
    std::atomic_ref(pending.times[unit.first_row + i].read_ns).store(now, std::memory_order_relaxed);
  }
  progress_.fetch_add(unit.rows, std::memory_order_relaxed);
  if (unit.in_place && !unit.has_fault) {
    for (std::uint32_t i = 0; i < unit.rows; ++i) {
      std::atomic_ref(pending.times[unit.first_row + i].done_ns).store(now, std::memory_order_relaxed);
    }
    rows_finished(pending, unit.rows);
    retire(unit);
    return;
  }
  bool wake_worker = false, all_may_work = true;
  {
    const std::scoped_lock lock(mutex_);
    all_may_work = active_workers_ >= static_cast<int>(workers_.size());
    const bool must_measure = recipe_.varies() && !unit.measured;
    if (!must_measure && pending.slab == nullptr && !pending.abandoned) {
      pending.parked.push_back(&unit);
      assign_slabs_locked();
    } else {
      queue_.push(&unit);
      queued_rows_ += unit.rows;
      bytes_depth_.change(now, queued_rows_);
      wake_worker = true;
    }
  }
  if (!wake_worker) return;
  if (inline_) {
    consumer_cv_.notify_all();
  } else if (all_may_work) {
    work_cv_.notify_one();
  } else {
    work_cv_.notify_all();  // one might be a worker that has been told to rest, and the work would lie
  }
}

void Loader::Engine::note_once(const Text& note) {
  const std::scoped_lock lock(mutex_);
  if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(note);
}

void Loader::Engine::io_loop(IoThread& self) {
  storage::Fetcher& fetcher = *self.fetcher;
  std::vector<storage::Fetched> finished(64);
  bool said_direct = options_.storage != storage::Storage::direct;
  std::int64_t now = meter::now_ns();
  const auto charge = [&](meter::Sum& sum) {
    const std::int64_t then = std::exchange(now, meter::now_ns());
    sum.add(now - then);
  };
  const auto reap = [&](std::chrono::nanoseconds timeout) {
    const std::size_t count = fetcher.wait(finished, timeout);
    charge(self.counters.input_wait_ns);
    for (std::size_t i = 0; i < count; ++i) {
      if (!is_joined(finished[i])) {
        complete(self, finished[i]);
      } else if (many_parts_) {
        complete_part(self, finished[i]);
      } else {
        complete_sweep(self, finished[i]);
      }
    }
  };
  try {
    while (true) {
      std::uint64_t admissions = 0;
      {
        const std::scoped_lock lock(mutex_);
        if (stopping_) return;
        admissions = admissions_;
      }
      bool refused = sweep_bytes_ != 0 && !submit_sweeps(self);
      while (sweep_bytes_ == 0 && fetcher.room() >= unit_rows_) {
        if (self.parted != nullptr) {
          submit_parts(self);
          continue;
        }
        self.refused.store(true, std::memory_order_relaxed);
        Unit* const unit = claim();
        if (unit == nullptr) {
          refused = true;
          break;
        }
        submit(self, *unit);
        // Rows in the page cache are in place as soon as they are asked for; claiming more first would take more slabs.
        if (in_place_) reap(std::chrono::nanoseconds::zero());
      }
      if (!refused) self.refused.store(false, std::memory_order_relaxed);
      charge(self.counters.busy_ns);
      if (fetcher.in_flight() == 0) {
        if (!refused) continue;
        std::unique_lock lock(mutex_);
        io_cv_.wait_for(lock, kLongWait, [&] { return stopping_ || admissions_ != admissions; });
        lock.unlock();
        charge(self.counters.room_wait_ns);
        continue;
      }
      reap(kLongWait);
      if (!said_direct && fetcher.direct_refused()) {
        said_direct = true;
        note_once(format_text("{}: this file system refuses O_DIRECT; files are read through the page cache",
                              option("storage", "direct")));
      }
    }
  } catch (const Error& error) {
    fail_for_good(error);
  } catch (const std::exception& error) {
    fail_for_good(Error(ErrorKind::internal, std::string("an I/O thread failed: ") + error.what()));
  }
}

}  // namespace stoker::loader
