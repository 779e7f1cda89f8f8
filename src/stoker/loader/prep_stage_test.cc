#include "stoker/loader/prep_stage.h"

#include <gtest/gtest.h>

#include "stoker/loader/engine_parts_test.h"

namespace stoker::loader {
namespace {

// The prep stage over the other parts; the test reads, and takes batches.
struct Preparing : EngineParts {
  explicit Preparing(const LoaderOptions& options)
      : EngineParts(held_sounds(8), options), stage(job, work, batches, units, nullptr, {}, signals) {}
  ~Preparing() {
    {
      const std::scoped_lock lock(signals.mutex);
      signals.stopping = true;
    }
    signals.workers.notify_all();
    stage.stop_waiting();
    stage.join();
  }

  // The batch of one unit whose bytes are `samples`, made by this thread.
  BatchPtr make(const std::vector<std::string>& samples) {
    batches.unit_read(unit_of(open_batch(step++), samples), 1);
    stage.work_inline(*next_unit());
    return take_batch();
  }

  std::uint64_t step = 0;
  PrepStage stage;
};

std::vector<float> first_frames(const Batch& batch) {
  std::vector<float> frames;
  const auto* const data = reinterpret_cast<const float*>(batch.tensors()[0].data);
  for (std::uint64_t row = 0; row < batch.size(); ++row) frames.push_back(data[row * 100] * 32768);
  return frames;
}

LoaderOptions on_error(OnError policy) {
  LoaderOptions options = rows_of_100(2);
  options.on_error = policy;
  return options;
}

TEST(PrepStage, MakesRowsInTheirPlaces) {
  Preparing parts(rows_of_100(2));
  const BatchPtr batch = parts.make({wav(100, 7), wav(100, 9)});
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(first_frames(*batch), (std::vector<float>{7, 9}));
  EXPECT_EQ(parts.units_out(), 0u) << "the unit is free again";
  meter::StageTotals totals;
  parts.stage.add_to(totals);
  EXPECT_EQ(totals.items, 2u);
}

TEST(PrepStage, LeavesABadRowOutWhereItIsToldToSkip) {
  Preparing parts(on_error(OnError::skip));
  const BatchPtr batch = parts.make({"not a sound", wav(100, 9)});
  EXPECT_EQ(first_frames(*batch), (std::vector<float>{9}));
}

TEST(PrepStage, MakesABadRowZeroAndMarksIt) {
  Preparing parts(on_error(OnError::zero));
  const BatchPtr batch = parts.make({wav(100, 7), "not a sound"});
  EXPECT_EQ(first_frames(*batch), (std::vector<float>{7, 0}));
  EXPECT_EQ(batch->valid()[0], 1);
  EXPECT_EQ(batch->valid()[1], 0);
}

TEST(PrepStage, PutsTheSameStandInInThePlaceOfABadRow) {
  Preparing parts(on_error(OnError::replace));
  const BatchPtr batch = parts.make({wav(100, 7), "not a sound"});
  const std::uint64_t stand_in = parts.job.make_order(0, 0).replacement(1, 0);
  EXPECT_EQ(first_frames(*batch), (std::vector<float>{7, static_cast<float>(stand_in)}));
  EXPECT_EQ(batch->indices()[1], static_cast<std::int64_t>(stand_in));
}

TEST(PrepStage, KeepsTheFirstFailureOfABatchThatEndsTheRun) {
  Preparing parts(on_error(OnError::raise));
  Pending& pending = parts.open_batch(0);
  Unit& unit = parts.unit_of(pending, {"not a sound", "nor this"});
  unit.faults[1].error_number = EIO;
  parts.batches.unit_read(unit, 1);
  parts.stage.work_inline(*parts.next_unit());
  ASSERT_TRUE(pending.failure);
  EXPECT_EQ(pending.failure->first, 0u);
  EXPECT_NE(pending.failure->second.message().find("held[0]"), std::string::npos);
  EXPECT_EQ(pending.errors.size(), 2u);
  EXPECT_EQ(pending.errors[1].stage, "read");
}

TEST(PrepStage, GivesAbandonedUnitsBackUnmade) {
  Preparing parts(rows_of_100(2));
  parts.batches.unit_read(parts.unit_of(parts.open_batch(0), {wav(100, 7), wav(100, 9)}), 1);
  {
    const std::scoped_lock lock(parts.signals.mutex);
    parts.batches.abandon_locked();
  }
  parts.stage.work_inline(*parts.next_unit());
  EXPECT_EQ(parts.units_out(), 0u);
  EXPECT_EQ(parts.take_batch(), nullptr);
}

TEST(PrepStage, WorkersTakeWhatIsQueued) {
  LoaderOptions options = rows_of_100(2);
  options.num_workers = 2;
  Preparing parts(options);
  {
    const std::scoped_lock lock(parts.signals.mutex);
    parts.stage.add_workers_locked(2);
  }
  const std::vector<std::string> samples = {wav(100, 7), wav(100, 9)};
  for (std::uint64_t step = 0; step < 3; ++step) {
    parts.batches.unit_read(parts.unit_of(parts.open_batch(step), samples), 1);
    std::unique_lock lock(parts.signals.mutex);
    parts.signals.consumer.wait(lock, [&] { return parts.batches.front_locked()->ready; });
    lock.unlock();
    EXPECT_EQ(first_frames(*parts.take_batch()), (std::vector<float>{7, 9}));
  }
}

}  // namespace
}  // namespace stoker::loader
