#include "stoker/measure/stage_ledger.h"

#include <gtest/gtest.h>

namespace stoker::measure {
namespace {

constexpr std::int64_t kMilli = 1'000'000;

// A stage of `threads` threads for ten seconds: each handles `items` items in each 100 ms, busy for `busy` of the time
// and on a core for `cpu` of that.
void run(SpanTimes& times, const std::string& name, int threads, std::uint64_t items, double busy, double cpu,
         int first_thread, std::int64_t from_ms = 0) {
  for (std::int64_t at = from_ms; at < 10'000; at += 100) {
    for (int i = 0; i < threads; ++i) {
      times.add({.stage = name,
                 .pid = 1,
                 .thread = first_thread + i,
                 .from_ns = at * kMilli,
                 .to_ns = (at + 100) * kMilli,
                 .calls = items,
                 .items = items,
                 .begun = items,
                 .busy_ns = static_cast<std::int64_t>(100 * kMilli * busy),
                 .cpu_ns = static_cast<std::int64_t>(100 * kMilli * busy * cpu)});
    }
  }
}

TEST(StageLedger, OfCaseDNamesTheReadersAndSaysThatThreadsDoNotCloseTheGap) {
  SpanTimes times;  // 8 threads read files in 5 ms each; the device wants 121,000 a second
  run(times, "read", 8, 20, 1.0, 0.05, 1);
  run(times, "device", 1, 160, 160 * 10 / 121'000.0, 0.1, 100, 1);
  const StageLedger ledger = stage_ledger(times, 24);
  ASSERT_TRUE(ledger.limit);
  EXPECT_EQ(ledger.stages[*ledger.limit].name, "read");
  EXPECT_EQ(ledger.bound, "fetch_bound");
  EXPECT_NEAR(ledger.stages[0].per_thread_per_s, 200, 1);
  EXPECT_NEAR(ledger.stages[0].capacity_per_s, 1600, 10);
  EXPECT_NEAR(ledger.stages[1].capacity_per_s, 121'000, 2000);
  EXPECT_GT(ledger.gain, 50);
  EXPECT_NE(ledger.headline.find("`read` is the limit"), std::string::npos) << ledger.headline;
  EXPECT_NE(ledger.advice.at(0).find("more than a machine runs well"), std::string::npos) << ledger.advice.at(0);
  EXPECT_EQ(ledger.widen_to, 16u);
  ASSERT_EQ(ledger.queues.size(), 1u);
  EXPECT_LE(ledger.queues[0].mean, 160);
}

TEST(StageLedger, SaysHowManyThreadsFeedTheNextStage) {
  SpanTimes times;  // two threads of 10 ms each, and a device that could take 500 a second
  run(times, "read", 2, 10, 1.0, 0.1, 1);
  run(times, "device", 1, 20, 0.4, 0.9, 100, 1);
  const StageLedger ledger = stage_ledger(times, 8);
  EXPECT_EQ(ledger.widen_to, 5u);
  EXPECT_EQ(ledger.advice.at(0), "widen `read`: 5 threads (now 2)");
  EXPECT_NEAR(ledger.gain, 2.5, 0.1);
}

TEST(StageLedger, AStageThatComputesIsWidenedToTheCoresAtMost) {
  SpanTimes times;
  run(times, "read", 2, 10, 0.2, 0.1, 1);
  run(times, "decode", 1, 20, 1.0, 0.98, 50, 1);
  run(times, "device", 1, 20, 0.1, 0.2, 100, 2);
  const StageLedger ledger = stage_ledger(times, 2);
  EXPECT_EQ(ledger.bound, "prep_bound");
  EXPECT_EQ(ledger.stages[*ledger.limit].name, "decode");
  EXPECT_EQ(ledger.widen_to, 2u);
  EXPECT_NE(ledger.advice.at(1).find("make `decode` cheaper"), std::string::npos);
}

TEST(StageLedger, ADeviceThatIsAlwaysAtWorkIsFed) {
  SpanTimes times;
  run(times, "read", 4, 5, 0.1, 0.1, 1);
  run(times, "device", 1, 20, 0.99, 0.2, 100, 1);
  const StageLedger ledger = stage_ledger(times, 8);
  EXPECT_EQ(ledger.bound, "compute_bound");
  EXPECT_TRUE(ledger.advice.empty());
  EXPECT_EQ(ledger.headline.find("compute_bound: `device` is at work 99 %"), 0u) << ledger.headline;
}

TEST(StageLedger, StagesOfTheSameThreadsAreOneLane) {
  SpanTimes times;  // each thread reads and then decodes: neither is the whole of its time
  run(times, "read", 4, 5, 0.65, 0.05, 1);
  run(times, "decode", 4, 5, 0.34, 0.95, 1, 1);
  run(times, "device", 1, 20, 0.05, 0.5, 100, 2);
  const StageLedger ledger = stage_ledger(times, 8);
  ASSERT_TRUE(ledger.limit) << ledger.headline;
  EXPECT_EQ(ledger.stages[*ledger.limit].name, "read") << "the larger part of the lane that is full";
  EXPECT_TRUE(ledger.stages[0].shares_threads);
}

TEST(StageLedger, OfStagesOneAfterTheOtherTellsToSeparateThem) {
  SpanTimes times;  // one thread reads for 9 ms and then processes for 1 ms
  run(times, "read", 1, 10, 0.9, 0.05, 1);
  run(times, "device", 1, 10, 0.1, 0.5, 1, 1);
  const StageLedger ledger = stage_ledger(times, 8);
  EXPECT_EQ(ledger.bound, "fetch_bound");
  EXPECT_NEAR(ledger.gain, 10, 0.2);
  EXPECT_EQ(ledger.advice.at(0).find("give `read` threads of its own and a queue"), 0u) << ledger.advice.at(0);
  EXPECT_EQ(ledger.widen_to, 9u);
  SpanTimes device;
  run(device, "read", 1, 10, 0.1, 0.05, 1);
  run(device, "device", 1, 10, 0.9, 0.5, 1, 1);
  EXPECT_EQ(stage_ledger(device, 8).bound, "compute_bound");
}

TEST(StageLedger, WhereNoStageIsAtWorkTheHandOffIs) {
  SpanTimes times;
  run(times, "read", 2, 10, 0.3, 0.1, 1);
  run(times, "device", 1, 20, 0.3, 0.1, 100, 1);
  EXPECT_EQ(stage_ledger(times, 8).bound, "handoff_bound");
}

TEST(StageLedger, QueuesAreWhatLeftOneStageAndDidNotEnterTheNext) {
  SpanTimes times;
  for (int slot = 0; slot < 40;
       ++slot) {  // 10 items each time in, from the 20th on 10 out as well; at the end the rest
    const std::int64_t from = slot * 100 * kMilli, to = from + 100 * kMilli - 1;
    times.add({"read", 1, 1, from, to, 1, 10, 10, 50 * kMilli, 0});
    const std::uint64_t out = slot < 20 ? 0 : slot < 39 ? 10 : 210;
    times.add({"device", 1, 2, from + 1, to, 1, out, out, 80 * kMilli, 0});
  }
  const StageLedger ledger = stage_ledger(times, 8);
  ASSERT_EQ(ledger.queues.size(), 1u);
  EXPECT_EQ(ledger.queues[0].most, 200);
  EXPECT_EQ(ledger.queues[0].last, 0);
  EXPECT_NEAR(ledger.queues[0].over_time[9].second, 100, 1);
  SpanTimes other;
  run(other, "read", 1, 1024, 1.0, 0, 1);
  run(other, "device", 1, 1, 0.1, 0, 2, 1);
  EXPECT_TRUE(stage_ledger(other, 8).queues.empty()) << "files on one side, batches on the other";
  EXPECT_NE(stage_ledger(other, 8).notes.at(0).find("count different things"), std::string::npos);
}

TEST(StageLedger, OfALongJobTakesNoMoreMemory) {
  SpanTimes times;
  for (std::int64_t second = 0; second < 100'000; second += 10)
    times.add({"read", 1, 1, second * 1000 * kMilli, (second + 10) * 1000 * kMilli, 1, 1, 1, kMilli, 0});
  EXPECT_LE(times.stages().at("read").slots.size(), 602u);
  EXPECT_EQ(times.stages().at("read").items, 10'000u);
}

}  // namespace
}  // namespace stoker::measure
