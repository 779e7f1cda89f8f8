// The fetch stage where a row needs several parts: they are chosen when the row is planned, counted together when room
// is taken, and read in any order. The row is handed over when its last part is there. A row may have more parts than
// may be in flight; its I/O thread then goes on with it before it claims another.
#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "stoker/loader/engine.h"

namespace stoker::loader {
namespace {

constexpr std::size_t kAtOnce = 64;
static_assert(alignof(Part) > kReadTag);

bool has_view(const storage::Location& where) noexcept {
  return where.source != nullptr && !where.source->view().empty();
}

}  // namespace

// The bytes of a row, of all its parts together.
std::uint64_t Loader::Engine::encoded_bytes(std::uint64_t index) const noexcept {
  if (!many_parts_) return dataset_->location(index).bytes;
  const dataset::RowKey key{options_.seed, 0, dataset_->id(index)};
  std::uint64_t bytes = 0;
  for (std::uint32_t part = 0, count = dataset_->parts(index, key); part < count; ++part) {
    bytes += dataset_->locate_part(index, key, part, {}).bytes;
  }
  return bytes;
}

Loader::Engine::Need Loader::Engine::need_of_parts(const Row& row, std::uint64_t epoch) const noexcept {
  const dataset::RowKey key{options_.seed, epoch, row.id};
  PartLayout layout(*io_threads_.front()->fetcher, fetch_alignment_);
  Need need;
  for (std::uint32_t part = 0, count = dataset_->parts(row.index, key); part < count; ++part) {
    const storage::Location where = dataset_->locate_part(row.index, key, part, {});
    need.bytes += where.bytes;
    if (!in_place_ && !has_view(where) && held_part(where).empty()) layout.add(where);
  }
  need.room = layout.total();
  return need;
}

codec::Bytes Loader::Engine::held_part(const storage::Location& where) const noexcept {
  return ram_ && where.source != nullptr ? ram_->find(*where.source, where.offset, where.bytes) : codec::Bytes{};
}

void Loader::Engine::begin_parts(IoThread& self, Unit& unit) {
  const Row& row = unit.pending->rows[unit.first_row];
  const dataset::RowKey key{options_.seed, unit.pending->epoch, row.id};
  const std::uint32_t count = unit.faults[0].too_large ? 0 : dataset_->parts(row.index, key);
  assert(count <= dataset_->facts().most_parts && "a data set keeps to its own most_parts");
  unit.parts.assign(count, {});
  unit.reads_left = count;
  self.parted = &unit;
  self.next_part = 0;
  self.part_layout.emplace(*self.fetcher, fetch_alignment_);
  self.part_offset = 0;
  submit_parts(self);
}

// Goes on with the row whose parts are not all submitted, as far as there is room.
void Loader::Engine::submit_parts(IoThread& self) {
  std::array<storage::Fetch, kAtOnce> fetches;
  thread_local std::vector<char> texts(kAtOnce * storage::kLocationText);
  Unit& unit = *self.parted;
  const Row& row = unit.pending->rows[unit.first_row];
  const dataset::RowKey key{options_.seed, unit.pending->epoch, row.id};
  std::byte* const slot = unit.in_place ? slot_of(*unit.pending, unit.first_row).outputs[0] : nullptr;
  while (self.next_part < unit.parts.size()) {
    if (unit.pending->abandoned.load(std::memory_order_relaxed)) {  // nobody wants the rest
      unit.reads_left -= static_cast<std::uint32_t>(unit.parts.size()) - self.next_part;
      break;
    }
    const std::size_t most = std::min(self.fetcher->room(), kAtOnce);
    if (most == 0) return;
    std::size_t count = 0;
    for (; count < most && self.next_part < unit.parts.size(); ++self.next_part) {
      Part& part = unit.parts[self.next_part];
      part.unit = &unit;
      part.number = self.next_part;
      storage::Fetch& fetch = fetches[count];
      fetch = {};
      fetch.where = dataset_->locate_part(row.index, key, self.next_part,
                                          {texts.data() + count * storage::kLocationText, storage::kLocationText});
      const storage::Location& where = fetch.where;
      const std::size_t offset = std::exchange(self.part_offset, self.part_offset + where.bytes);
      if (const codec::Bytes held = held_part(where); !held.empty()) {
        if (unit.in_place) std::memcpy(slot + offset, held.data(), held.size());
        part.bytes = unit.in_place ? codec::Bytes(slot + offset, held.size()) : held;
        self.counters.bytes.add(static_cast<std::int64_t>(held.size()));
        --unit.reads_left;
        continue;
      }
      if (where.has_name() && where.name == nullptr) {
        ReadFault fault;
        fault.error_number = ENAMETOOLONG;
        part_failed(part, std::move(fault));
        --unit.reads_left;
        continue;
      }
      if (unit.in_place) {
        fetch.into = {slot + offset, where.bytes};
      } else if (!has_view(where)) {
        const PartLayout::Place place = self.part_layout->add(where);
        fetch.into = {unit.block.data + place.at, place.bytes};
      }
      fetch.tag = reinterpret_cast<std::uintptr_t>(&part) | kReadTag;
      ++count;
    }
    if (count > 0) self.fetcher->submit({fetches.data(), count});
  }
  self.parted = nullptr;
  if (unit.reads_left == 0) parts_finished(self, unit);
}

void Loader::Engine::parts_finished(IoThread& self, Unit& unit) {
  self.counters.items.add(1);
  read_finished(unit, meter::now_ns());
}

// Which part is named does not depend on which failed first in time.
void Loader::Engine::part_failed(const Part& part, ReadFault fault) {
  Unit& unit = *part.unit;
  if (unit.faults[0].is_any() && unit.faults[0].part < part.number) return;
  fault.part = part.number;
  unit.faults[0] = std::move(fault);
  unit.has_fault = true;
}

void Loader::Engine::complete_part(IoThread& self, const storage::Fetched& fetched) {
  Part& part = *reinterpret_cast<Part*>(fetched.tag & ~kReadTag);
  Unit& unit = *part.unit;
  if (fetched.code == storage::FetchCode::ok) {
    part.bytes = fetched.data;
    self.counters.bytes.add(static_cast<std::int64_t>(fetched.data.size()));
  } else {
    part_failed(part, fault_of(fetched));
  }
  if (--unit.reads_left == 0 && self.parted != &unit) parts_finished(self, unit);
}

// The row as one run of bytes: as it lies, or copied to `scratch`. False: it has no room for the copy.
bool Loader::Engine::join_parts(std::span<const Part> parts, Scratch& scratch, codec::Bytes& whole) {
  std::size_t total = 0;
  const std::byte* first = nullptr;
  bool is_one_run = true;
  for (const Part& part : parts) {
    if (part.bytes.empty()) continue;
    if (first == nullptr) first = part.bytes.data();
    is_one_run = is_one_run && part.bytes.data() == first + total;
    total += part.bytes.size();
  }
  if (is_one_run) {
    whole = {first, total};
    return true;
  }
  const std::span<std::byte> into = scratch.take(total);
  if (into.size() != total) return false;
  std::size_t at = 0;
  for (const Part& part : parts) {
    if (!part.bytes.empty()) std::memcpy(into.data() + at, part.bytes.data(), part.bytes.size());
    at += part.bytes.size();
  }
  whole = into;
  return true;
}

}  // namespace stoker::loader
