#include "stoker/loader/figures.h"

#include <vector>

#include <gtest/gtest.h>

namespace stoker::loader {
namespace {

Stats stats_of(const Figures& figures) {
  Stats stats;
  figures.fill(stats);
  return stats;
}

TEST(Figures, SplitTheRunIntoComputeAndWait) {
  Figures figures(100);
  const std::vector<meter::RowTimes> times = {{1'200, 1'500}};
  EXPECT_EQ(figures.asked(1'000), 0) << "nothing was handed out before";
  figures.handed_out({.called_ns = 1'000, .now_ns = 1'600, .samples = 4, .bytes = 40}, times);
  EXPECT_EQ(figures.asked(3'600), 2'000);

  const Stats stats = stats_of(figures);
  EXPECT_EQ(stats.samples, 4u);
  EXPECT_EQ(stats.batches, 1u);
  EXPECT_EQ(stats.decoded_bytes, 40u);
  EXPECT_EQ(stats.wait.fetch_ns, 200);
  EXPECT_EQ(stats.wait.prep_ns, 300);
  EXPECT_EQ(stats.wait.handoff_ns, 100);
  EXPECT_DOUBLE_EQ(stats.compute_s, 2e-6);
  EXPECT_DOUBLE_EQ(stats.running_s, 2.6e-6);
  EXPECT_DOUBLE_EQ(stats.first_batch_s, 1.5e-6);
}

TEST(Figures, DoNotCountTheTimeBetweenTwoEpochs) {
  Figures figures(0);
  figures.asked(10);
  figures.handed_out({.called_ns = 10, .now_ns = 20, .samples = 1, .bytes = 1}, {});
  figures.epoch_entered();
  EXPECT_EQ(figures.asked(5'000), 0);
}

TEST(Figures, StartFromZeroAfterAReset) {
  Figures figures(0);
  figures.asked(10);
  figures.handed_out({.called_ns = 10, .now_ns = 20, .samples = 1, .bytes = 1}, {});
  meter::StageTotals fetched;
  fetched.items = 7;
  fetched.bytes = 70;
  Stats counted;
  counted.fetch = fetched;
  counted.store.requests = 3;
  figures.reset(counted);

  Stats stats;
  stats.fetch = fetched;
  stats.fetch.bytes += 5;
  figures.fill(stats);
  EXPECT_EQ(stats.samples, 0u);
  EXPECT_EQ(stats.wait.total_ns(), 0);
  EXPECT_EQ(stats.fetch.items, 0u);
  EXPECT_EQ(stats.encoded_bytes, 5u);
  EXPECT_GT(stats.first_batch_s, 0) << "the time to the first batch is that of the run";
}

}  // namespace
}  // namespace stoker::loader
