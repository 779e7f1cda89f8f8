#include "stoker/meter/ledger.h"

#include <vector>

#include <gtest/gtest.h>

#include "stoker/meter/counters.h"

namespace stoker::meter {
namespace {

TEST(Ledger, ChargesEachInstantToTheOldestMissingRow) {
  // Row 0 is read at 10 and done at 30; row 1 (done at 20) never matters; row 2 arrives at 40 and is done at 45.
  const std::vector<RowTimes> rows = {{10, 30}, {5, 20}, {40, 45}};
  const WaitSplit split = split_wait(0, 50, rows);
  EXPECT_EQ(split.fetch_ns, 10 + 10);
  EXPECT_EQ(split.prep_ns, 20 + 5);
  EXPECT_EQ(split.handoff_ns, 5);
}

TEST(Ledger, ABatchThatWasReadyIsHandoffOnly) {
  const std::vector<RowTimes> rows = {{1, 2}, {3, 4}};
  const WaitSplit split = split_wait(10, 12, rows);
  EXPECT_EQ(split.fetch_ns + split.prep_ns, 0);
  EXPECT_EQ(split.handoff_ns, 2);
}

TEST(Ledger, SumsToTheWait) {
  for (std::int64_t from : {0, 7, 15, 60}) {
    const std::vector<RowTimes> rows = {{10, 30}, {50, 55}, {20, 90}};
    EXPECT_EQ(split_wait(from, 100, rows).total_ns(), 100 - from);
  }
}

TEST(Ledger, JudgesByTheLargestShare) {
  Verdict verdict = judge(700, {.fetch_ns = 50, .prep_ns = 250, .handoff_ns = 0});
  EXPECT_EQ(verdict.bound, Bound::prep);
  EXPECT_DOUBLE_EQ(verdict.share, 0.25);
  EXPECT_EQ(verdict.severity, "severe");
  EXPECT_NEAR(verdict.gain, 1000.0 / 750, 1e-9);
  EXPECT_EQ(general_name(verdict.bound), "io_bound");
  verdict = judge(980, {.fetch_ns = 20, .prep_ns = 0, .handoff_ns = 0});
  EXPECT_EQ(name(verdict.bound), "compute_bound");
  EXPECT_EQ(verdict.severity, "fine");
}

TEST(Ledger, JudgesByTheRunningTimeAlsoWhereAPartOfItIsNeitherComputeNorWait) {
  const Verdict verdict = judge(0, {.fetch_ns = 50, .prep_ns = 410, .handoff_ns = 80}, 460);
  EXPECT_EQ(verdict.bound, Bound::prep);
  EXPECT_DOUBLE_EQ(verdict.share, 0.41);
  EXPECT_NEAR(verdict.gain, 1000.0 / 590, 1e-9);
  EXPECT_EQ(judge(10, {.fetch_ns = 40, .prep_ns = 0, .handoff_ns = 0}, 950).bound, Bound::compute);
}

TEST(DepthMeter, WeighsByTime) {
  DepthMeter meter;
  meter.start(0, 0);
  meter.change(10, 2);
  meter.change(40, 1);
  const DepthMeter::Depth depth = meter.read(100);
  EXPECT_DOUBLE_EQ(depth.mean, (0 * 10 + 2 * 30 + 1 * 60) / 100.0);
  EXPECT_EQ(depth.least, 0u);
  EXPECT_EQ(depth.most, 2u);
  EXPECT_DOUBLE_EQ(depth.empty_share, 0.1);
}

}  // namespace
}  // namespace stoker::meter
