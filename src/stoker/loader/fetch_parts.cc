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

#include "stoker/loader/fetch_stage.h"

namespace stoker::loader {
namespace {

constexpr std::size_t kAtOnce = 64;
static_assert(alignof(Part) > kReadTag);

// Which part is named does not depend on which failed first in time.
void part_failed(const Part& part, ReadFault fault) {
  Unit& unit = *part.unit;
  if (unit.faults[0].is_any() && unit.faults[0].part < part.number) return;
  fault.part = part.number;
  unit.faults[0] = std::move(fault);
  unit.has_fault = true;
}

}  // namespace

// Chunks of stores are read beside the parts: a worker takes them when it makes the row.
void FetchStage::announce(const Row& row, const dataset::RowKey& key) const noexcept {
  if (chunks_.reader == nullptr) return;
  SampleKey sample;
  sample.seed = key.seed;
  sample.epoch = key.epoch;
  sample.id = key.id;
  sample.base_index = job_.dataset->base_index(row.index);
  sample.chunks = chunks_;
  job_.recipe.announce(sample);
}

void FetchStage::begin_parts(Reader& self, Unit& unit) {
  const Row& row = unit.pending->rows[unit.first_row];
  const dataset::RowKey key{job_.options.seed, unit.pending->epoch, row.id};
  announce(row, key);
  const std::uint32_t count = unit.faults[0].too_large ? 0 : job_.dataset->parts(row.index, key);
  assert(count <= job_.dataset->facts().most_parts && "a data set keeps to its own most_parts");
  unit.parts.assign(count, {});
  unit.reads_left = count;
  self.parted = &unit;
  self.next_part = 0;
  self.part_layout.emplace(*self.fetcher, row_bytes_.alignment());
  self.part_offset = 0;
  submit_parts(self);
}

// Goes on with the row whose parts are not all submitted, as far as there is room.
void FetchStage::submit_parts(Reader& self) {
  std::array<storage::Fetch, kAtOnce> fetches;
  thread_local std::vector<char> texts(kAtOnce * storage::kLocationText);
  Unit& unit = *self.parted;
  const Row& row = unit.pending->rows[unit.first_row];
  const dataset::RowKey key{job_.options.seed, unit.pending->epoch, row.id};
  std::byte* const slot = unit.in_place ? batches_.slot_of(*unit.pending, unit.first_row).outputs[0] : nullptr;
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
      const storage::Location where = job_.dataset->locate_part(
          row.index, key, self.next_part, {texts.data() + count * storage::kLocationText, storage::kLocationText});
      const std::size_t offset = std::exchange(self.part_offset, self.part_offset + where.bytes);
      if (const codec::Bytes held = row_bytes_.resident_part(where); !held.empty()) {
        if (unit.in_place) std::memcpy(slot + offset, held.data(), held.size());
        part.bytes = unit.in_place ? codec::Bytes(slot + offset, held.size()) : held;
        self.counters.bytes.add(static_cast<std::int64_t>(held.size()));
        --unit.reads_left;
        continue;
      }
      const std::optional<storage::Fetch> found =
          storage::fetch_of(where, reinterpret_cast<std::uintptr_t>(&part) | kReadTag);
      if (!found) {
        ReadFault fault;
        fault.error_number = ENAMETOOLONG;
        part_failed(part, std::move(fault));
        --unit.reads_left;
        continue;
      }
      storage::Fetch& fetch = fetches[count++];
      fetch = *found;
      if (unit.in_place) {
        fetch.into = {slot + offset, where.bytes};
      } else if (!storage::has_view(where)) {
        const PartLayout::Place place = self.part_layout->add(where);
        fetch.into = {unit.block.data + place.at, place.bytes};
      }
    }
    if (count > 0) self.fetcher->submit({fetches.data(), count});
  }
  self.parted = nullptr;
  if (unit.reads_left == 0) parts_finished(self, unit);
}

void FetchStage::parts_finished(Reader& self, Unit& unit) {
  self.counters.items.add(1);
  read_finished(unit, meter::now_ns());
}

void FetchStage::complete_part(Reader& self, const storage::Fetched& fetched) {
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

}  // namespace stoker::loader
