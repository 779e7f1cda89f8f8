#include "stoker/loader/handed_batch.h"

#include <gtest/gtest.h>

#include "stoker/loader/engine_parts_test.h"

namespace stoker::loader {
namespace {

// A batch of two finished rows, with the pool that its slab came from.
struct Finished {
  Finished() {
    Unit& unit = parts.unit_of(parts.open_batch(1), {wav(100, 1), wav(100, 2)});
    parts.batches.unit_read(unit, 1);
    parts.next_unit();
    for (std::uint64_t row = 0; row < 2; ++row) {
      *reinterpret_cast<float*>(parts.batches.slot_of(*unit.pending, row).outputs[0]) = static_cast<float>(row + 1);
    }
    unit.pending->rows[1].valid = false;
    parts.batches.rows_finished(*unit.pending, unit.rows);
    parts.units.retire(unit);
  }
  EngineParts parts{held_sounds(8), rows_of_100(2)};
};

TEST(HandedBatch, TellsWhichRowsItHolds) {
  Finished finished;
  const BatchPtr batch = finished.parts.take_batch();
  ASSERT_NE(batch, nullptr);
  ASSERT_EQ(batch->size(), 2u);
  EXPECT_EQ(batch->step(), 1u);
  EXPECT_EQ(batch->indices()[0], 2);
  EXPECT_EQ(batch->ids()[1], 3);
  EXPECT_EQ(batch->position_of(1), 3u);
  EXPECT_TRUE(batch->valid()[0]);
  EXPECT_FALSE(batch->valid()[1]);
}

TEST(HandedBatch, ItsTensorLiesInTheSlab) {
  Finished finished;
  const BatchPtr batch = finished.parts.take_batch();
  const Tensor& tensor = batch->tensors()[0];
  EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{2, 100}));
  const auto* const values = reinterpret_cast<const float*>(tensor.data);
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[100], 2.0f);
}

TEST(HandedBatch, KeepsItsSlabUntilTheLastCopyIsDropped) {
  Finished finished;
  SlabPool& pool = finished.parts.batches.pool();
  BatchPtr batch = finished.parts.take_batch();
  BatchPtr copy = batch;
  const std::uint64_t free = pool.free_count();
  batch.reset();
  EXPECT_EQ(pool.free_count(), free);
  copy.reset();
  EXPECT_EQ(pool.free_count(), free + 1);
}

}  // namespace
}  // namespace stoker::loader
