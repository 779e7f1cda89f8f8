#include "stoker/loader/work_queue.h"

#include <gtest/gtest.h>

namespace stoker::loader {
namespace {

TEST(WorkQueue, GivesUnitsInTheOrderInWhichTheyCame) {
  Signals signals;
  WorkQueue work(2, false, 1, signals);
  Unit first, second;
  for (int round = 0; round < 3; ++round) {  // it is a ring
    work.push_locked(first);
    work.push_locked(second);
    EXPECT_EQ(work.size_locked(), 2u);
    EXPECT_EQ(work.pop_locked(), &first);
    EXPECT_EQ(work.pop_locked(), &second);
    EXPECT_EQ(work.pop_locked(), nullptr);
  }
}

TEST(WorkQueue, MeasuresItsDepthInRows) {
  Signals signals;
  WorkQueue work(2, false, 1, signals);
  Unit unit;
  unit.rows = 3;
  work.restart_depth_locked(1'000);
  work.push_locked(unit);
  work.note_depth_locked(2'000);
  const meter::DepthMeter::Depth depth = work.depth_locked(3'000);
  EXPECT_EQ(depth.now, 3u);
  EXPECT_DOUBLE_EQ(depth.mean, 1.5);
  EXPECT_DOUBLE_EQ(depth.empty_share, 0.5);
}

TEST(WorkQueue, KnowsWhetherAWorkerRests) {
  Signals signals;
  WorkQueue work(2, false, 2, signals);
  work.add_worker_locked();
  work.add_worker_locked();
  EXPECT_TRUE(work.all_may_work_locked());
  work.set_active_locked(1);
  EXPECT_FALSE(work.all_may_work_locked());
}

}  // namespace
}  // namespace stoker::loader
