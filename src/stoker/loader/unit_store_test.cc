#include "stoker/loader/unit_store.h"

#include <vector>

#include <gtest/gtest.h>

#include "stoker/loader/engine_parts_test.h"

namespace stoker::loader {
namespace {

TEST(UnitStore, LendsEachUnitToOneAtATime) {
  EngineParts parts(held_sounds(8), rows_of_100(2));
  Pending& pending = parts.open_batch(0);
  std::vector<Unit*> taken;
  while (Unit* const unit = parts.units.take(pending, 0)) taken.push_back(unit);
  EXPECT_EQ(taken.size(), parts.job.memory.max_units);
  EXPECT_EQ(parts.units_out(), taken.size());

  parts.units.retire(*taken.back());
  EXPECT_EQ(parts.units.take(pending, 1), taken.back());
  for (Unit* const unit : taken) parts.units.retire(*unit);
  EXPECT_EQ(parts.units_out(), 0u);
}

TEST(UnitStore, GivesTheRoomOfARetiredUnitToTheNext) {
  EngineParts parts(held_sounds(8), rows_of_100(2));
  Pending& pending = parts.open_batch(0);
  const auto unit_with_all_room = [&] {
    Unit* const unit = parts.units.take(pending, 0);
    unit->block_bytes = parts.job.memory.ring;
    return unit;
  };
  Unit* const first = unit_with_all_room();
  Unit* const second = unit_with_all_room();
  EXPECT_TRUE(parts.units.take_room(*first));
  EXPECT_FALSE(parts.units.take_room(*second));
  const std::uint64_t rings = parts.bell.rings_locked();
  parts.units.retire(*first);
  EXPECT_NE(parts.bell.rings_locked(), rings) << "whoever waits for room hears of it";
  EXPECT_TRUE(parts.units.take_room(*second));
  parts.units.retire(*second);
}

TEST(UnitStore, CountsTheMemoryOfEncodedBytesUntilItIsDropped) {
  EngineParts parts(held_sounds(8), rows_of_100(2));
  EXPECT_EQ(parts.units.memory_bytes_locked(), parts.job.memory.ring);
  parts.units.drop_memory_locked();
  EXPECT_EQ(parts.units.memory_bytes_locked(), 0u);
}

}  // namespace
}  // namespace stoker::loader
