#include "stoker/loader/fetch_stage.h"

#include <gtest/gtest.h>

#include "stoker/loader/engine_parts_test.h"

namespace stoker::loader {
namespace {

// The fetch stage over the other parts; the test is the worker.
struct Fetching : EngineParts {
  Fetching(dataset::DatasetPtr data, const LoaderOptions& options)
      : EngineParts(std::move(data), options),
        stage(job, make_fetchers(), row_bytes, nullptr, {}, planner, batches, units, bell, signals,
              [](const Text&) {}) {
    planner.start(job.make_order(0, 0), 0, 0, 0);
    stage.start();
  }
  ~Fetching() {
    {
      const std::scoped_lock lock(signals.mutex);
      signals.stopping = true;
    }
    signals.readers.notify_all();
    stage.wake();
    stage.join();
    stage.cancel_reads();
  }

  FetchStage::Fetchers make_fetchers() const {
    FetchStage::Fetchers fetchers;
    fetchers.push_back(storage::make_fetcher({.depth = job.options.io_depth}, job.dataset->backends()));
    return fetchers;
  }

  Unit& await_unit() {
    std::unique_lock lock(signals.mutex);
    Unit* unit = nullptr;
    signals.consumer.wait(lock, [&] { return (unit = batches.next_unit_locked()) != nullptr || signals.broken; });
    if (signals.broken) throw *signals.broken;
    return *unit;
  }

  FetchStage stage;
};

std::string text_of(codec::Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(FetchStage, HandsOverTheBytesOfEachRowInTheOrderOfThePlan) {
  Fetching parts(held_sounds(6), rows_of_100(2));
  std::vector<std::string> rows;
  while (rows.size() < 6) {
    Unit& unit = parts.await_unit();
    EXPECT_FALSE(unit.has_fault);
    for (std::uint32_t i = 0; i < unit.rows; ++i) rows.push_back(text_of(unit.bytes[i]));
    parts.batches.rows_finished(*unit.pending, unit.rows);
    parts.units.retire(unit);
    parts.take_batch();
  }
  for (std::int16_t i = 0; i < 6; ++i) EXPECT_EQ(rows[static_cast<std::size_t>(i)], wav(100, i)) << i;
  meter::StageTotals totals;
  parts.stage.add_to(totals);
  EXPECT_GE(totals.items, 6u);
}

TEST(FetchStage, HandsOverARowThatCannotBeReadWithTheReason) {
  const std::shared_ptr<HeldData> data = held_sounds(2);
  data->failures.emplace(1, Error(ErrorKind::unavailable, "the disk is gone"));
  Fetching parts(data, rows_of_100(2));
  std::vector<ReadFault> faults;
  while (faults.size() < 2) {
    const Unit& unit = parts.await_unit();
    for (std::uint32_t i = 0; i < unit.rows; ++i) faults.push_back(unit.faults[i]);
  }
  EXPECT_FALSE(faults[0].is_any());
  ASSERT_TRUE(faults[1].failure);
  EXPECT_NE(faults[1].failure->text.find("the disk is gone"), std::string::npos);
}

TEST(FetchStage, EndsWithRowsThatNobodyTook) {
  Fetching parts(held_sounds(100), rows_of_100(2));
  parts.await_unit();
}  // a hang is the failure

}  // namespace
}  // namespace stoker::loader
