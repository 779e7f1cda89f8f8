#include "stoker/loader/batch_queue.h"

#include <gtest/gtest.h>

#include "stoker/loader/engine_parts_test.h"

namespace stoker::loader {
namespace {

const std::vector<std::string> kTwoRows = {wav(100, 1), wav(100, 2)};

// What readers and workers would do.
void finish(EngineParts& parts, Unit& unit) {
  parts.batches.rows_finished(*unit.pending, unit.rows);
  parts.units.retire(unit);
}

TEST(BatchQueue, HandsBatchesOutInTheirOrderWhicheverIsReadyFirst) {
  EngineParts parts(held_sounds(8), rows_of_100(2));
  Unit& first = parts.unit_of(parts.open_batch(0), kTwoRows);
  Unit& second = parts.unit_of(parts.open_batch(1), kTwoRows);
  parts.batches.unit_read(first, 1);
  parts.next_unit();
  parts.batches.unit_read(second, 2);
  parts.next_unit();
  finish(parts, second);
  EXPECT_EQ(parts.take_batch(), nullptr) << "the first one comes first";
  finish(parts, first);
  EXPECT_EQ(parts.take_batch()->step(), 0u);
  EXPECT_EQ(parts.take_batch()->step(), 1u);
  EXPECT_EQ(parts.take_batch(), nullptr);
}

TEST(BatchQueue, LetsAUnitWaitUntilItsBatchMayHaveASlab) {
  LoaderOptions options = rows_of_100(2);
  options.prefetch_factor = 0;  // one slab at a time
  EngineParts parts(held_sounds(8), options);
  Unit& first = parts.unit_of(parts.open_batch(0), kTwoRows);
  Unit& second = parts.unit_of(parts.open_batch(1), kTwoRows);
  parts.batches.unit_read(first, 1);
  parts.batches.unit_read(second, 2);
  EXPECT_EQ(parts.next_unit(), &first);
  EXPECT_EQ(parts.next_unit(), nullptr);
  finish(parts, first);
  EXPECT_EQ(parts.next_unit(), nullptr) << "the slab is still that of a batch that nobody took";
  EXPECT_NE(parts.take_batch(), nullptr);
  EXPECT_EQ(parts.next_unit(), &second);
  finish(parts, second);
}

TEST(BatchQueue, TakesSkippedRowsOut) {
  EngineParts parts(held_sounds(8), rows_of_100(2));
  Pending& pending = parts.open_batch(0);
  Unit& unit = parts.unit_of(pending, kTwoRows);
  parts.batches.unit_read(unit, 1);
  parts.next_unit();
  for (std::uint64_t row = 0; row < 2; ++row) {
    *reinterpret_cast<float*>(parts.batches.slot_of(pending, row).outputs[0]) = static_cast<float>(row);
  }
  pending.rows[0].skipped = true;
  finish(parts, unit);
  const BatchPtr batch = parts.take_batch();
  ASSERT_EQ(batch->size(), 1u);
  EXPECT_EQ(batch->indices()[0], 1);
  EXPECT_EQ(*reinterpret_cast<const float*>(batch->tensors()[0].data), 1.0f);
  EXPECT_EQ(batch->position_of(0), 1u);
}

TEST(BatchQueue, OpensAsManyBatchesAsMemoryAllows) {
  EngineParts parts(held_sounds(1000), rows_of_100(2));
  for (std::uint64_t step = 0; step < parts.job.memory.max_pendings; ++step) parts.open_batch(step);
  EXPECT_EQ(parts.batches.open({.serial = parts.job.memory.max_pendings, .range = {}}), nullptr);
}

TEST(BatchQueue, MakesABatchWithoutRowsReadyAtOnce) {
  EngineParts parts(held_sounds(8), rows_of_100(2));
  EXPECT_NE(parts.batches.open({.serial = 0, .range = {}}), nullptr);
  const BatchPtr batch = parts.take_batch();
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->size(), 0u);
}

TEST(BatchQueue, GivesAbandonedUnitsToTheWorkersAndForgetsTheirBatches) {
  LoaderOptions options = rows_of_100(2);
  options.prefetch_factor = 0;
  EngineParts parts(held_sounds(8), options);
  Unit& first = parts.unit_of(parts.open_batch(0), kTwoRows);
  Unit& second = parts.unit_of(parts.open_batch(1), kTwoRows);
  parts.batches.unit_read(first, 1);
  parts.batches.unit_read(second, 2);  // waits for a slab
  {
    const std::scoped_lock lock(parts.signals.mutex);
    parts.batches.abandon_locked();
  }
  EXPECT_EQ(parts.next_unit(), &first);
  EXPECT_EQ(parts.next_unit(), &second);
  finish(parts, first);
  finish(parts, second);
  std::unique_lock lock(parts.signals.mutex);
  parts.batches.release_locked(lock);
  EXPECT_EQ(parts.batches.front_locked(), nullptr);
  EXPECT_EQ(parts.batches.ready_locked(), 0u) << "a batch that was abandoned does not become ready";
  EXPECT_EQ(parts.batches.pool().free_count(), parts.batches.pool().count());
}

TEST(BatchQueue, SaysThatTheConsumerHoldsAllThatTheNextBatchNeeds) {
  LoaderOptions options = rows_of_100(2);
  options.transform = transform::parse_ops("pad:500000");  // few batches fit
  EngineParts parts(held_sounds(1000), options);
  std::vector<BatchPtr> held;
  std::string message;
  for (std::uint64_t step = 0; step < 400 && message.empty(); ++step) {
    Unit& unit = parts.unit_of(parts.open_batch(step), kTwoRows);
    parts.batches.unit_read(unit, 1);
    if (parts.next_unit() != nullptr) {
      finish(parts, unit);
      held.push_back(parts.take_batch());
      continue;
    }
    const std::scoped_lock lock(parts.signals.mutex);
    try {
      parts.batches.check_room_locked();
    } catch (const Error& error) {
      message = error.message();
    }
  }
  EXPECT_NE(message.find("the consumer still holds"), std::string::npos) << message;
  held.clear();  // the slabs come back, and the one that waited gets one
  EXPECT_NE(parts.next_unit(), nullptr);
}

}  // namespace
}  // namespace stoker::loader
