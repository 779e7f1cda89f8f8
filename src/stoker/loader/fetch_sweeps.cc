// The fetch stage where rows lie in a few files that are read past the page cache: instead of one read per row, many
// rows of the plan are swept up together. See sweep.h.
#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "stoker/loader/fetch_stage.h"

namespace stoker::loader {
namespace {

static_assert(alignof(Sweep::Read) > kReadTag && alignof(Unit) > kReadTag);

}  // namespace

// False: the plan has no more now.
bool FetchStage::submit_sweeps(Reader& self) {
  std::array<storage::Fetch, 64> fetches;
  while (self.fetcher->room() > 0) {
    if (self.sweep == nullptr) {
      self.bell.refused.store(true, std::memory_order_relaxed);
      self.sweep = planner_.claim_sweep();
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
      const storage::Location where = storage::Location::in_source(read.source, read.offset, read.bytes);
      std::uint64_t first_used = 0;  // without what lies between the rows
      for (std::uint32_t i = 0; i < read.pieces; ++i) {
        const Sweep::Piece& piece = sweep.pieces[read.first + i];
        first_used += first_use(self, *piece.unit, piece.range.bytes);
      }
      if (was_handed_over(where, {read.into, read.room}, first_used)) {
        self.counters.bytes.add(static_cast<std::int64_t>(read.bytes));
        finish_pieces(self, read, {read.into, read.bytes});
        continue;
      }
      storage::Fetch& fetch = fetches[count++];
      fetch = {};
      fetch.where = where;
      fetch.into = {read.into, read.room};
      fetch.tag = reinterpret_cast<std::uintptr_t>(&read) | kReadTag;
    }
    if (count > 0) self.fetcher->submit({fetches.data(), count});
    if (sweep.submitted == sweep.reads.size()) {
      self.sweep = nullptr;
      units_.leave(sweep);
    }
  }
  return true;
}

void FetchStage::complete_sweep(Reader& self, const storage::Fetched& fetched) {
  Sweep::Read& read = *reinterpret_cast<Sweep::Read*>(fetched.tag & ~kReadTag);
  if (fetched.code == storage::FetchCode::ok) {
    self.counters.bytes.add(static_cast<std::int64_t>(fetched.data.size()));
    finish_pieces(self, read, fetched.data);
  } else {
    read_pieces(self, read, fetched);
  }
}

// A read of many rows failed: each on its own, so that only those fail that must.
void FetchStage::read_pieces(Reader& self, Sweep::Read& read, const storage::Fetched& fetched) {
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
void FetchStage::finish_pieces(Reader& self, const Sweep::Read& read, codec::Bytes data) {
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
