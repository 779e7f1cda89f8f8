// The fetch stage where rows lie in a few files that are read past the page cache: instead of one read per row, many
// rows of the plan are swept up together. See sweep.h.
#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "stoker/loader/engine.h"

namespace stoker::loader {
namespace {

static_assert(alignof(Sweep::Read) > kReadTag && alignof(Unit) > kReadTag);

}  // namespace

// Of a read that is not one row's: of a sweep, or of a part.
bool Loader::Engine::is_joined(const storage::Fetched& fetched) noexcept {
  return (fetched.tag & kReadTag) != 0;
}

// Adds the next rows of the plan. True: it is full, or its window ends. plan_mutex_ is held.
bool Loader::Engine::extend(Sweep& sweep) {
  while (true) {
    while (plan_pending_ == nullptr || plan_row_ == plan_pending_->range.count) {
      if (!open_pending()) return false;
    }
    Pending& pending = *plan_pending_;
    Unit* unit = nullptr;
    for (; plan_row_ < pending.range.count; ++plan_row_) {
      const std::uint64_t position = pending.range.first + plan_row_;
      const std::uint64_t window = plan_order_->window(position);
      if (sweep.is_empty()) sweep.epoch = pending.epoch, sweep.window = window;
      if (window != sweep.window || (pending.epoch != sweep.epoch && window_rows_ != 0)) return true;
      const std::uint64_t index = plan_order_->sample(position);
      const storage::Location where = dataset_->location(index);
      const storage::Range range = where.range();
      const codec::Bytes held = resident(index, where);
      const bool too_large = range.bytes > allowance_.encoded_bytes;
      const bool fits = too_large || (!held.empty() && sweep.is_empty()) || sweep.has_room(range, sweep_most_);
      if (!fits) return true;
      if (unit == nullptr || unit->rows == unit_rows_) {
        unit = take_unit(pending);
        if (unit == nullptr) return false;
        unit->sweep = &sweep;
        sweep.units.push_back(unit);
      }
      plan_row(pending, position, index);
      const std::uint32_t row = unit->rows++;
      unit->bytes[row] = held;
      unit->faults[row] = {};
      if (too_large) {
        unit->faults[row].too_large = true;
        unit->faults[row].actual_bytes = range.bytes;
        unit->has_fault = true;
      } else if (!held.empty()) {
        sweep.skip(range);
      } else {
        sweep.add(*unit, row, range);
        ++unit->reads_left;
      }
    }
  }
}

// A sweep that could be larger waits, unless nothing else is under way: small ones would join little.
Sweep* Loader::Engine::claim_sweep() {
  const std::scoped_lock plan(plan_mutex_);
  if (paused_) return nullptr;
  if (plan_sweep_ == nullptr) {
    const std::scoped_lock lock(mutex_);
    if (free_sweeps_.empty()) return nullptr;
    plan_sweep_ = free_sweeps_.back();
    free_sweeps_.pop_back();
    plan_sweep_->clear();
  }
  if (!extend(*plan_sweep_)) {
    const std::scoped_lock lock(mutex_);
    if (plan_sweep_->is_empty() || units_out_ > plan_sweep_->units.size()) return nullptr;
  }
  // The first ones are small, so that the first batch does not wait for what comes after it.
  sweep_most_ = std::min(2 * sweep_most_, sweep_bytes_);
  Sweep* const sweep = std::exchange(plan_sweep_, nullptr);
  sweep->arrange();
  sweep->users.store(static_cast<std::uint32_t>(sweep->units.size()) + 1, std::memory_order_relaxed);
  return sweep;
}

// True: nobody uses it any more, and it can be filled again.
bool Loader::Engine::leave(Sweep& sweep) {
  if (sweep.users.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
  const std::scoped_lock lock(mutex_);
  free_sweeps_.push_back(&sweep);
  return true;
}

// False: the plan has no more now.
bool Loader::Engine::submit_sweeps(IoThread& self) {
  std::array<storage::Fetch, 64> fetches;
  while (self.fetcher->room() > 0) {
    if (self.sweep == nullptr) {
      self.refused.store(true, std::memory_order_relaxed);
      self.sweep = claim_sweep();
      if (self.sweep == nullptr) return false;
      for (Unit* const unit : self.sweep->units) {
        for (std::uint32_t row = 0; row < unit->rows; ++row) {
          if (unit->bytes[row].empty()) continue;  // not in memory before
          self.counters.items.add(1);
          self.counters.bytes.add(static_cast<std::int64_t>(unit->bytes[row].size()));
        }
        if (unit->reads_left == 0) read_finished(*unit, meter::now_ns());
      }
    }
    Sweep& sweep = *self.sweep;
    const std::size_t most = std::min(self.fetcher->room(), fetches.size());
    std::size_t count = 0;
    for (; count < most && sweep.submitted < sweep.reads.size(); ++sweep.submitted) {
      Sweep::Read& read = sweep.reads[sweep.submitted];
      if (sweep.pieces[read.first].unit->pending->abandoned.load(std::memory_order_relaxed)) {
        finish_pieces(self, read, {});
        continue;
      }
      storage::Fetch& fetch = fetches[count++];
      fetch = {};
      fetch.where = storage::Location::in_source(read.source, read.offset, read.bytes);
      fetch.into = {read.into, read.room};
      fetch.tag = reinterpret_cast<std::uintptr_t>(&read) | kReadTag;
    }
    if (count > 0) self.fetcher->submit({fetches.data(), count});
    if (sweep.submitted == sweep.reads.size()) {
      self.sweep = nullptr;
      leave(sweep);
    }
  }
  return true;
}

void Loader::Engine::complete_sweep(IoThread& self, const storage::Fetched& fetched) {
  Sweep::Read& read = *reinterpret_cast<Sweep::Read*>(fetched.tag & ~kReadTag);
  if (fetched.code == storage::FetchCode::ok) {
    self.counters.bytes.add(static_cast<std::int64_t>(fetched.data.size()));
    finish_pieces(self, read, fetched.data);
  } else {
    read_pieces(self, read, fetched);
  }
}

// A read of many rows failed: each on its own, so that only those fail that must.
void Loader::Engine::read_pieces(IoThread& self, Sweep::Read& read, const storage::Fetched& fetched) {
  const std::span<std::byte> into(read.into, read.bytes);
  for (std::uint32_t i = 0; i < read.pieces; ++i) {
    const Sweep::Piece& piece = read.sweep->pieces[read.first + i];
    ReadFault& fault = piece.unit->faults[piece.row];
    const std::uint64_t end = piece.range.offset + piece.range.bytes;
    if (fetched.code == storage::FetchCode::size_changed && end > fetched.actual_bytes) {
      fault.size_changed = true;
      fault.actual_bytes = fetched.actual_bytes;
    } else {
      try {
        const storage::Read again{piece.range.offset,
                                  into.subspan(piece.range.offset - read.offset, piece.range.bytes)};
        piece.range.source->read({&again, 1});
      } catch (const std::exception& error) {
        fault.error_number = fetched.error_number;
        if (fault.error_number == 0) fault.failure = std::make_shared<storage::Failure>(storage::failure_of(error));
      }
    }
    if (fault.is_any()) piece.unit->has_fault = true;
  }
  finish_pieces(self, read, into);
}

// `data`: of the read; empty if nobody wants the rows any more.
void Loader::Engine::finish_pieces(IoThread& self, const Sweep::Read& read, codec::Bytes data) {
  const std::uint64_t offset = read.offset;
  const Sweep::Piece* piece = &read.sweep->pieces[read.first];
  // Once its last row is finished the sweep may be in use again.
  for (std::uint32_t left = read.pieces; left > 0; --left, ++piece) {
    Unit& unit = *piece->unit;
    if (!data.empty()) unit.bytes[piece->row] = data.subspan(piece->range.offset - offset, piece->range.bytes);
    self.counters.items.add(1);
    if (--unit.reads_left == 0) read_finished(unit, meter::now_ns());
  }
}

}  // namespace stoker::loader
