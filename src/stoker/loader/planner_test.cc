#include "stoker/loader/planner.h"

#include <gtest/gtest.h>

#include "stoker/loader/engine_parts_test.h"

namespace stoker::loader {
namespace {

void start(EngineParts& parts) {
  parts.planner.start(parts.job.make_order(0, 0), 0, 0, 0);
}

std::vector<std::uint64_t> positions_of(const Unit& unit) {
  std::vector<std::uint64_t> positions;
  for (std::uint32_t i = 0; i < unit.rows; ++i) positions.push_back(unit.pending->rows[unit.first_row + i].position);
  return positions;
}

// What would happen to a unit: it is read, made, and its batch taken when it is ready.
void pass(EngineParts& parts, Unit& unit) {
  parts.batches.unit_read(unit, 1);
  while (Unit* const next = parts.next_unit()) {
    parts.batches.rows_finished(*next->pending, next->rows);
    parts.units.retire(*next);
  }
  parts.take_batch();
}

TEST(Planner, ClaimsRowsInGlobalOrderAndGoesOnIntoTheNextEpoch) {
  LoaderOptions options = rows_of_100(4);
  options.shuffle = true;
  EngineParts parts(held_sounds(10), options);
  start(parts);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> claimed, right;  // epoch and sample
  while (claimed.size() < 30) {
    Unit* const unit = parts.planner.claim();
    ASSERT_NE(unit, nullptr);
    for (std::uint32_t i = 0; i < unit->rows; ++i) {
      claimed.emplace_back(unit->pending->epoch, unit->pending->rows[unit->first_row + i].index);
    }
    pass(parts, *unit);
  }
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    const dataset::Order order = parts.job.make_order(epoch, 0);
    for (std::uint64_t position = 0; position < 10; ++position) right.emplace_back(epoch, order.sample(position));
  }
  EXPECT_EQ(claimed, right);
}

TEST(Planner, ReadsAheadToTheEndOfTheNextEpochOnly) {
  LoaderOptions options = rows_of_100(2);
  options.prefetch_factor = 1;
  EngineParts parts(held_sounds(8), options);
  start(parts);
  const auto claim_all = [&] {
    std::uint64_t last = 0;
    while (Unit* const unit = parts.planner.claim()) {
      last = unit->pending->epoch;
      parts.batches.unit_read(*unit, 1);
    }
    return last;
  };
  ASSERT_GT(parts.job.memory.max_pendings, 16u) << "there is memory for more";
  EXPECT_EQ(claim_all(), 1u);

  // The consumer takes all of epoch 0: epoch 1 is still the one after it.
  while (Unit* const unit = parts.next_unit()) {
    parts.batches.rows_finished(*unit->pending, unit->rows);
    parts.units.retire(*unit);
  }
  for (int step = 0; step < 4; ++step) parts.take_batch();
  EXPECT_EQ(parts.planner.claim(), nullptr);
}

TEST(Planner, ReadsNothingAheadOfTheLastEpoch) {
  LoaderOptions options = rows_of_100(2);
  options.epochs = 1;
  EngineParts parts(held_sounds(8), options);
  start(parts);
  std::uint64_t rows = 0;
  while (Unit* const unit = parts.planner.claim()) {
    EXPECT_EQ(unit->pending->epoch, 0u);
    rows += unit->rows;
    parts.batches.unit_read(*unit, 1);
  }
  EXPECT_EQ(rows, 8u);
}

TEST(Planner, ReadsNothingAheadOfTheLastStepUntilThatIsMoved) {
  EngineParts parts(held_sounds(8), rows_of_100(2));
  const auto claim_all = [&] {
    std::uint64_t rows = 0;
    while (Unit* const unit = parts.planner.claim()) {
      rows += unit->rows;
      parts.batches.unit_read(*unit, 1);
    }
    return rows;
  };
  parts.planner.set_end(3);
  start(parts);
  EXPECT_EQ(claim_all(), 6u);
  parts.planner.set_end(5);
  EXPECT_EQ(claim_all(), 4u) << "also into the next epoch";
}

TEST(Planner, ClaimsNothingBeforeItStartsAndAfterItStops) {
  EngineParts parts(held_sounds(10), rows_of_100(4));
  EXPECT_EQ(parts.planner.claim(), nullptr);
  EXPECT_FALSE(parts.planner.epoch());
  start(parts);
  EXPECT_EQ(parts.planner.epoch(), 0u);
  parts.planner.stop();
  EXPECT_EQ(parts.planner.claim(), nullptr);
}

TEST(Planner, OffersRowsThatHadNoRoomFirstWhenThereIsSome) {
  EngineParts parts(held_sounds(100), rows_of_100(4));
  Pending& other = parts.open_batch(20);
  Unit* const all_room = parts.units.take(other, 0);
  all_room->block_bytes = parts.job.memory.ring;
  ASSERT_TRUE(parts.units.take_room(*all_room));

  start(parts);
  EXPECT_EQ(parts.planner.claim(), nullptr);
  EXPECT_EQ(parts.units_out(), 2u) << "the unit that waits for room is planned already";
  EXPECT_EQ(parts.planner.claim(), nullptr);
  parts.units.retire(*all_room);
  Unit* const unit = parts.planner.claim();
  ASSERT_NE(unit, nullptr);
  EXPECT_EQ(positions_of(*unit).front(), 0u);
  EXPECT_EQ(positions_of(*parts.planner.claim()).front(), unit->rows);
}

TEST(Planner, TakesBackWhatHadNoRoomWhenItStops) {
  EngineParts parts(held_sounds(100), rows_of_100(4));
  Pending& other = parts.open_batch(20);
  Unit* const all_room = parts.units.take(other, 0);
  all_room->block_bytes = parts.job.memory.ring;
  ASSERT_TRUE(parts.units.take_room(*all_room));
  start(parts);
  EXPECT_EQ(parts.planner.claim(), nullptr);
  parts.planner.stop();
  EXPECT_EQ(parts.units_out(), 1u);
}

TEST(Planner, MarksASampleThatIsLargerThanAnyMayBe) {
  std::vector<std::string> samples(4, wav(100, 1));
  samples[2].resize(16 << 20);
  LoaderOptions options = rows_of_100(4);
  options.memory_limit = 32 << 20;
  EngineParts parts(std::make_shared<HeldData>(samples), options);
  start(parts);
  std::vector<bool> too_large;
  while (too_large.size() < 4) {
    Unit* const unit = parts.planner.claim();
    ASSERT_NE(unit, nullptr);
    for (std::uint32_t i = 0; i < unit->rows; ++i) too_large.push_back(unit->faults[i].too_large);
  }
  EXPECT_EQ(too_large, (std::vector<bool>{false, false, true, false}));
}

}  // namespace
}  // namespace stoker::loader
