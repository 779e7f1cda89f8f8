#include "stoker/loader/memory_division.h"

#include <algorithm>

#include "stoker/base/round.h"
#include "stoker/base/units.h"
#include "stoker/codec/seek_index.h"
#include "stoker/loader/pending.h"
#include "stoker/os/arena.h"

namespace stoker::loader {
namespace {

constexpr std::uint64_t kLeastScratch = 256 * kKiB;
constexpr std::uint64_t kReadTogether = 256 * kKiB;    // bytes of a unit
constexpr std::uint64_t kMostChunkReads = 256 * kMiB;  // a store that gives 1 GB/s after 0.1 s, and as much again
constexpr std::uint64_t kSeekSlack = 2 * kMiB;         // for the odd file that a pack's places do not have
constexpr std::uint32_t kFinest = 8, kCoarsest = 64;   // MCUs; docs/background/benchmark-tables.md: what they cost

// What a sample takes on the ring: its bytes, one to see that it grew, and alignment (see Fetcher::buffer_bytes).
std::uint64_t room_on_ring(const MemoryFacts& facts, std::uint64_t bytes) noexcept {
  return facts.direct ? round_up(bytes + 1, 4096) + 8192 : round_up(bytes + 1, 64) + 64;
}

std::uint64_t beside_allowance(const MemoryFacts& facts) noexcept {
  return thread_bytes(facts.workers + facts.io_threads + (facts.is_far && facts.chunk_bytes > 0 ? 1 : 0)) +
         (facts.direct ? direct_bytes(facts.demand) : 0);
}

std::uint64_t at_least_one(std::uint64_t value) noexcept {
  return std::max<std::uint64_t>(1, value);
}

std::uint32_t rows_of_unit(const MemoryFacts& facts, std::uint64_t usual) noexcept {
  if (facts.is_heavy || facts.demand.most_parts > 1) return 1;
  const std::uint64_t by_bytes = at_least_one((facts.demand.in_place ? 2 * kReadTogether : kReadTogether) / usual);
  const std::uint64_t by_batch = at_least_one(facts.batch_size / (2 * facts.workers));
  return static_cast<std::uint32_t>(std::min({by_bytes, by_batch, std::uint64_t{Unit::kMaxRows}, facts.thread_depth}));
}

// The memory that one sweep would like, where a row takes `row` bytes of it.
std::uint64_t wanted_by_sweep(const MemoryFacts& facts, std::uint32_t unit_rows, std::uint64_t row) noexcept {
  const std::uint64_t rows = std::min<std::uint64_t>(facts.samples, kMostAhead * unit_rows);
  const std::uint64_t bytes = facts.window_rows != 0 ? facts.window_rows * row
                                                     : std::clamp(facts.demand.limit_bytes / 16, 4 * kMiB, kMixedBytes);
  return os::Arena::rounded(std::min(bytes, rows * row) + 4096);
}

// Of `room`: fewer places per file rather than fewer files.
void share_with_seek(const MemoryFacts& facts, std::uint64_t room, Division& division) noexcept {
  if (facts.seek == MemoryFacts::Seek::packed) division.seek = std::min<std::uint64_t>(room, kSeekSlack);
  if (facts.seek != MemoryFacts::Seek::noted || facts.seekable_mcus == 0) return;
  const auto need = [&](std::uint32_t step) {
    // With half as much again for images larger than the first.
    return facts.stored_files * (256 + facts.seekable_mcus / step * sizeof(codec::Checkpoint) * 3 / 2) + kSeekSlack;
  };
  std::uint32_t step = kFinest;
  while (step < kCoarsest && need(step) > room) step *= 2;
  division.seek_step = step;
  division.seek = std::min(need(step), room);
}

// Of `room`; nothing where it does not hold one.
void share_with_chunks(const MemoryFacts& facts, std::uint64_t room, Division& division) noexcept {
  if (facts.chunk_bytes == 0) return;
  if (facts.is_far) {
    division.chunk_reads = os::Arena::within(std::min({room / 4, kMostChunkReads, facts.chunked_bytes + kMiB}));
    if (division.chunk_reads < facts.chunk_bytes + kMiB) division.chunk_reads = 0;  // it would hold none
    room -= division.chunk_reads;
  }
  const std::uint64_t wanted = os::Arena::rounded(facts.chunked_bytes);
  division.chunks = std::min(wanted, room);
  if (division.chunks < os::Arena::rounded(facts.chunk_bytes)) division.chunks = 0;
}

void share_with_ram(const MemoryFacts& facts, std::uint64_t room, Division& division) noexcept {
  if (facts.ram == MemoryFacts::Ram::off) return;
  const std::uint64_t wanted = facts.data_bytes + facts.data_beside_bytes;
  division.ram_room = room;
  division.ram = facts.ram == MemoryFacts::Ram::if_all_fits && wanted > room ? 0 : std::min(room, wanted);
}

// The ring becomes sweeps.
void share_among_sweeps(const MemoryFacts& facts, Division& division) noexcept {
  division.sweep_count = division.ring / kSweeps >= division.wanted_sweep ? kSweeps : 2;
  division.sweep = division.ring / division.sweep_count;
  division.sweep = division.sweep >= 2 * kMiB ? division.sweep / (2 * kMiB) * (2 * kMiB) : division.sweep / 4096 * 4096;
  division.first_sweep = std::max(facts.demand.batch_size * room_on_ring(facts, facts.mean_bytes), kMiB);
  division.ring = 4096;
}

// How many batches and units may be in the making: as many as slabs and `ahead` batches on the ring can use, within
// the memory for plans.
void count_plans(const MemoryFacts& facts, std::uint64_t ahead, Division& division) noexcept {
  const Demand& demand = facts.demand;
  // More batches in the making than slabs for them would only be a list of plans.
  const std::uint64_t slabs =
      std::min<std::uint64_t>({facts.prefetch_factor, division.slabs / at_least_one(demand.batch_bytes), 4096});
  const PlanCounts most = plans_within(division.allowance.plan_bytes, demand);
  division.max_pendings = std::min(slabs + 2 + ahead, most.pendings);
  const std::uint64_t batch_units = (demand.batch_size + division.unit_rows - 1) / division.unit_rows;
  const std::uint64_t wanted = std::min<std::uint64_t>(division.max_pendings * batch_units,
                                                       division.sweep_count == 0 ? 4096 : kSweeps * kMostAhead) +
                               8;
  // A batch whose length is known only when all of it was read keeps all of its units, of one row at worst, until then.
  division.max_units = std::min(std::max(wanted, demand.varies ? demand.batch_size + 8 : 0), most.units);
}

}  // namespace

Division divide_memory(const MemoryFacts& facts) noexcept {
  const Demand& demand = facts.demand;
  const std::uint64_t batch = demand.batch_size, slab = demand.batch_bytes;
  Division division;
  division.allowance = allow(demand);
  division.beside = beside_allowance(facts);
  const Allowance& allowance = division.allowance;
  division.is_enough = allowance.is_enough && allowance.spare_bytes >= division.beside;
  if (!division.is_enough) return division;
  std::uint64_t left = allowance.spare_bytes - division.beside;
  const auto grant = [&](std::uint64_t wanted) {
    const std::uint64_t granted = std::min(wanted, left);
    left -= granted;
    return granted;
  };
  const std::uint64_t usual = room_on_ring(facts, at_least_one(facts.mean_bytes));
  const std::uint64_t largest = room_on_ring(facts, allowance.encoded_bytes);

  // Working memory for every worker, some reading ahead, the batches that prefetch_factor asks for, and more reading
  // ahead.
  const std::uint64_t all_working =
      demand.decodes ? os::Arena::rounded(facts.workers * std::max(facts.scratch_estimate, kLeastScratch) * 5 / 4) : 0;
  division.working = allowance.working_bytes;
  if (all_working > division.working) division.working += grant(std::min(all_working - division.working, left / 2));
  const std::uint64_t ring_least =
      std::max<std::uint64_t>(allowance.ring_bytes + (facts.direct ? direct_bytes(demand) : 0), 4096);
  division.unit_rows = rows_of_unit(facts, usual);
  if (facts.sweeps) {
    division.wanted_sweep =
        std::max(wanted_by_sweep(facts, division.unit_rows, room_on_ring(facts, facts.mean_bytes)), ring_least / 2);
  }
  std::uint64_t ring_wanted = (facts.prefetch_factor + 2) * batch * usual + 2 * largest + kReadTogether;
  // Far away, io_depth samples are on their way at once, however small the batches are.
  if (facts.is_far) ring_wanted = std::max(ring_wanted, facts.io_depth * usual + 2 * largest);
  if (facts.sweeps) ring_wanted = kSweeps * division.wanted_sweep;
  if (facts.read_ahead != 0) ring_wanted = facts.read_ahead + largest;
  ring_wanted = demand.in_place ? ring_least : std::max(os::Arena::rounded(ring_wanted), ring_least);
  division.ring = ring_least + grant(std::min(ring_wanted - ring_least, demand.limit_bytes / 8));
  const std::uint64_t more_slabs = demand.varies ? 0 : std::min(facts.prefetch_factor, left / at_least_one(slab));
  left -= more_slabs * slab;
  division.ring += grant(ring_wanted - division.ring);
  // An arena is whole pages, large ones from 2 MiB on: what does not fill one goes back.
  if (const std::uint64_t whole = division.ring / (2 * kMiB) * (2 * kMiB); whole >= ring_least && whole > 0) {
    left += division.ring - whole;
    division.ring = whole;
  }
  division.ring = division.ring / 4096 * 4096;
  share_with_seek(facts, left / 2, division);
  left -= division.seek;
  share_with_chunks(facts, left - std::min(left, 2 * slab), division);
  left -= division.chunks + division.chunk_reads;
  share_with_ram(facts, left - std::min(left, 2 * slab), division);
  left -= division.ram;
  if (division.ram == 0) division.hand_over = std::min(facts.hand_over_bytes, left - std::min(left, 2 * slab));
  left -= division.hand_over;
  // What is left may hold batches that the consumer keeps.
  division.slabs = (demand.varies ? 2 * allowance.batch_bytes : (2 + more_slabs) * slab) + left;

  division.unit = demand.in_place ? 2 * kReadTogether : std::min(kReadTogether, division.ring / 4);
  if (facts.sweeps) share_among_sweeps(facts, division);
  const std::uint64_t held = facts.sweeps ? division.sweep_count * division.sweep : division.ring;
  const std::uint64_t ahead = held / at_least_one(batch * (facts.sweeps ? facts.mean_bytes : usual));
  count_plans(facts, std::min<std::uint64_t>(ahead, facts.sweeps ? kMostAhead : 64), division);
  return division;
}

std::uint64_t least_limit(const MemoryFacts& facts) {
  const std::uint64_t beside = beside_allowance(facts);
  return enough_limit(facts.demand, [&](const Allowance& other) { return other.spare_bytes >= beside; });
}

}  // namespace stoker::loader
