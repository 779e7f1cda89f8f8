#include "stoker/loader/memory_division.h"

#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/base/units.h"

namespace stoker::loader {
namespace {

// 10,000 photos as JPEG files, 224 x 224 in batches of 32, on 4 workers.
MemoryFacts photo_files(std::uint64_t limit_bytes) {
  MemoryFacts facts;
  facts.demand.limit_bytes = limit_bytes;
  facts.batch_size = facts.demand.batch_size = 32;
  facts.demand.batch_bytes = 6 * kMiB;
  facts.demand.list_bytes = 500 * kKiB;
  facts.demand.usual_bytes = 110 * kKiB;
  facts.demand.largest_bytes = kMiB;
  facts.mean_bytes = 120 * kKiB;
  facts.samples = facts.stored_files = 10'000;
  facts.scratch_estimate = kMiB;
  facts.is_heavy = true;
  facts.workers = 4;
  facts.io_threads = 2;
  return facts;
}

// 50,000 sounds whose rows differ in length, in batches of 256.
MemoryFacts sound_files(std::uint64_t limit_bytes) {
  MemoryFacts facts = photo_files(limit_bytes);
  facts.batch_size = facts.demand.batch_size = 256;
  facts.demand.batch_bytes = 4 * kMiB;
  facts.demand.usual_bytes = facts.mean_bytes = 8 * kKiB;
  facts.demand.largest_bytes = 30 * kKiB;
  facts.demand.varies = true;
  facts.samples = facts.stored_files = 50'000;
  facts.scratch_estimate = 0;
  facts.is_heavy = false;
  return facts;
}

// A large .npy, whose rows are read straight into the slab.
MemoryFacts array_rows(std::uint64_t limit_bytes) {
  MemoryFacts facts = photo_files(limit_bytes);
  facts.demand.usual_bytes = facts.demand.largest_bytes = facts.mean_bytes = 150'528;
  facts.demand.in_place = true;
  facts.demand.decodes = false;
  facts.is_heavy = false;
  facts.stored_files = 1;
  return facts;
}

// A pack that is read past the page cache, many rows at a time.
MemoryFacts swept_pack(std::uint64_t limit_bytes) {
  MemoryFacts facts = photo_files(limit_bytes);
  facts.direct = facts.sweeps = true;
  facts.io_threads = 1;
  return facts;
}

struct Case {
  const char* name;
  MemoryFacts facts;
  const char* shares;
};

MemoryFacts with(MemoryFacts facts, const std::function<void(MemoryFacts&)>& change) {
  change(facts);
  return facts;
}

std::string kib(std::uint64_t bytes) {
  return fmt::format("{}{}", bytes / kKiB, bytes % kKiB == 0 ? "" : "+");
}

// In KiB; a + where that is not exact.
std::string text_of(const Division& division) {
  if (!division.is_enough) return "not enough";
  std::string text =
      fmt::format("working {} slabs {} ring {}", kib(division.working), kib(division.slabs), kib(division.ring));
  if (division.sweep_count != 0) {
    text += fmt::format(" sweeps {}x{} from {}", division.sweep_count, kib(division.sweep), kib(division.first_sweep));
  }
  if (division.seek != 0) text += fmt::format(" seek {}/{}", kib(division.seek), division.seek_step);
  if (division.ram != 0) text += fmt::format(" ram {}", kib(division.ram));
  if (division.hand_over != 0) text += fmt::format(" hand-over {}", kib(division.hand_over));
  return text + fmt::format(" | {} rows in {}, {} units, {} batches", division.unit_rows, kib(division.unit),
                            division.max_units, division.max_pendings);
}

std::vector<Case> cases() {
  using Seek = MemoryFacts::Seek;
  using Ram = MemoryFacts::Ram;
  return {
      {"photos", photo_files(kGiB), "working 598016 slabs 408076 ring 18432 | 1 rows in 256, 264 units, 8 batches"},
      {"photos, little memory", photo_files(40 * kMiB),
       "working 12288 slabs 12300+ ring 10240 | 1 rows in 256, 200 units, 6 batches"},
      {"photos, too little memory", photo_files(16 * kMiB), "not enough"},
      {"photos, too many threads for it", with(photo_files(40 * kMiB), [](auto& f) { f.workers = 200; }), "not enough"},
      {"photos, many workers", with(photo_files(kGiB), [](auto& f) { f.workers = 64; }),
       "working 598016 slabs 396940 ring 18432 | 1 rows in 256, 264 units, 8 batches"},
      {"photos, many batches ahead", with(photo_files(kGiB), [](auto& f) { f.prefetch_factor = 100; }),
       "working 598016 slabs 289292 ring 137216 | 1 rows in 256, 2696 units, 84 batches"},
      {"photos, much read ahead", with(photo_files(kGiB), [](auto& f) { f.read_ahead = 200 * kMiB; }),
       "working 598016 slabs 219660 ring 206848 | 1 rows in 256, 1832 units, 57 batches"},
      {"photos, places noted", with(photo_files(kGiB), [](auto& f) { f.seek = Seek::noted, f.seekable_mcus = 1000; }),
       "working 598016 slabs 381555+ ring 18432 seek 26520+/8 | 1 rows in 256, 264 units, 8 batches"},
      {"photos, places noted in little memory",
       with(photo_files(64 * kMiB), [](auto& f) { f.seek = Seek::noted, f.seekable_mcus = 1000; }),
       "working 28672 slabs 18694+ ring 10240 seek 262/64 | 1 rows in 256, 200 units, 6 batches"},
      {"photos, places in the pack", with(photo_files(kGiB), [](auto& f) { f.seek = Seek::packed; }),
       "working 598016 slabs 406028 ring 18432 seek 2048/0 | 1 rows in 256, 264 units, 8 batches"},
      {"photos, kept in memory",
       with(photo_files(4 * kGiB), [](auto& f) { f.ram = Ram::if_all_fits, f.data_bytes = kGiB; }),
       "working 1646592 slabs 1456652 ring 18432 ram 1048576 | 1 rows in 256, 264 units, 8 batches"},
      {"photos, kept in memory only if all fit",
       with(photo_files(kGiB), [](auto& f) { f.ram = Ram::if_all_fits, f.data_bytes = kGiB; }),
       "working 598016 slabs 408076 ring 18432 | 1 rows in 256, 264 units, 8 batches"},
      {"photos, kept in memory as far as they fit",
       with(photo_files(kGiB), [](auto& f) { f.ram = Ram::what_fits, f.data_bytes = kGiB; }),
       "working 598016 slabs 36864 ring 18432 ram 371212 | 1 rows in 256, 264 units, 8 batches"},
      {"photos that opening has left in memory",
       with(photo_files(kGiB), [](auto& f) { f.hand_over_bytes = 100 * kMiB; }),
       "working 598016 slabs 305676 ring 18432 hand-over 102400 | 1 rows in 256, 264 units, 8 batches"},
      {"photos that opening has left in memory, as far as they fit",
       with(photo_files(kGiB), [](auto& f) { f.hand_over_bytes = kGiB; }),
       "working 598016 slabs 36864 ring 18432 hand-over 371212 | 1 rows in 256, 264 units, 8 batches"},
      {"photos with O_DIRECT", with(photo_files(kGiB), [](auto& f) { f.direct = true; }),
       "working 598016 slabs 406028 ring 20480 | 1 rows in 256, 264 units, 8 batches"},
      {"patches of many parts", with(photo_files(kGiB), [](auto& f) { f.demand.most_parts = 27; }),
       "working 598016 slabs 408076 ring 18432 | 1 rows in 256, 264 units, 8 batches"},
      {"sounds", sound_files(kGiB), "working 253952 slabs 760332 ring 10240 | 31 rows in 256, 264 units, 8 batches"},
      {"sounds, few requests in flight", with(sound_files(kGiB), [](auto& f) { f.thread_depth = 4; }),
       "working 253952 slabs 760332 ring 10240 | 4 rows in 256, 520 units, 8 batches"},
      {"rows of an array", array_rows(kGiB), "working 152 slabs 1024372 ring 4 | 3 rows in 512, 52 units, 4 batches"},
      {"a pack in sweeps", swept_pack(kGiB),
       "working 598016 slabs 223756 ring 4 sweeps 3x67584 from 4224 | 1 rows in 256, 1800 units, 56 batches"},
      {"a pack in sweeps, little memory", swept_pack(64 * kMiB),
       "working 28672 slabs 18956+ ring 4 sweeps 2x4096 from 4224 | 1 rows in 256, 200 units, 6 batches"},
      {"a pack in sweeps of its blocks", with(swept_pack(kGiB), [](auto& f) { f.window_rows = 500; }),
       "working 598016 slabs 223756 ring 4 sweeps 3x67584 from 4224 | 1 rows in 256, 1800 units, 56 batches"},
  };
}

TEST(MemoryDivision, GivesEachPartItsShare) {
  for (const Case& one : cases()) EXPECT_EQ(text_of(divide_memory(one.facts)), one.shares) << one.name;
}

std::uint64_t sum(const MemoryFacts& facts, const Division& division) {
  return division.allowance.fixed_bytes + thread_bytes(facts.workers + facts.io_threads) + division.working +
         division.slabs + division.ring + division.sweep_count * division.sweep + division.seek + division.ram +
         division.hand_over;
}

TEST(MemoryDivision, HasRoomForAllRequestsInFlightWhereDataIsFar) {
  MemoryFacts facts = photo_files(kGiB);
  facts.io_depth = 256;
  const std::uint64_t in_flight = facts.io_depth * facts.mean_bytes;
  EXPECT_LT(divide_memory(facts).ring, in_flight);
  facts.is_far = true;
  const Division division = divide_memory(facts);
  EXPECT_GE(division.ring, in_flight);
  EXPECT_LE(sum(facts, division), kGiB);
  facts.demand.limit_bytes = 40 * kMiB;
  EXPECT_TRUE(divide_memory(facts).is_enough) << "it is a wish, not a need";
}

TEST(MemoryDivision, SharesOutNoMoreThanTheLimit) {
  for (Case one : cases()) {
    for (std::uint64_t limit = 16 * kMiB; limit < 40 * kGiB; limit += limit / 9) {
      one.facts.demand.limit_bytes = limit;
      const Division division = divide_memory(one.facts);
      if (!division.is_enough) continue;
      EXPECT_LE(sum(one.facts, division), limit + 4096) << one.name << ": one page is the ring beside sweeps";
      EXPECT_GE(division.slabs, 2 * one.facts.demand.batch_bytes) << one.name;
      EXPECT_GE(division.max_pendings, 3u) << one.name;
      EXPECT_GE(division.working, division.allowance.working_bytes) << one.name;
    }
  }
}

TEST(MemoryDivision, NamesTheLeastLimitThatIsEnough) {
  for (Case one : cases()) {
    one.facts.demand.limit_bytes = kMiB;
    const std::uint64_t least = least_limit(one.facts);
    one.facts.demand.limit_bytes = least;
    EXPECT_TRUE(divide_memory(one.facts).is_enough) << one.name;
    one.facts.demand.limit_bytes = least - least / 100;
    EXPECT_FALSE(divide_memory(one.facts).is_enough) << one.name;
  }
}

}  // namespace
}  // namespace stoker::loader
