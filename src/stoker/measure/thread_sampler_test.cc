#include "stoker/measure/thread_sampler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/os/temp_folder_test.h"

namespace stoker::measure {
namespace {

constexpr std::int64_t kTick = 1'000'000'000;

// Threads of process 10 after `seconds`, each with shares of its time.
void write_threads(const os::TempFolder& root, int threads, double seconds, double running, double ready, char state,
                   std::uint64_t read_per_s) {
  for (int i = 0; i < threads; ++i) {
    const std::string place = fmt::format("proc/10/task/{}/", 10 + i);
    root.file(place + "children", "");
    root.file(place + "stat", fmt::format("{} (python) {} 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 1 1", 10 + i, state));
    root.file(place + "schedstat", fmt::format("{} {} 7", static_cast<std::int64_t>(1e9 * running * seconds),
                                               static_cast<std::int64_t>(1e9 * ready * seconds)));
    root.file(place + "io",
              fmt::format("rchar: 1\nread_bytes: {}\n", static_cast<std::uint64_t>(seconds) * read_per_s));
  }
}

std::vector<ThreadFacts> seen(int threads, double running, double ready, char state, std::uint64_t read_per_s = 0) {
  const os::TempFolder root;
  ThreadSampler sampler(root.path());
  for (int second = 0; second <= 4; ++second) {
    write_threads(root, threads, second, running, ready, state, read_per_s);
    sampler.sample(10, (1 + second) * kTick);
    sampler.sample(10, (1 + second) * kTick + 1000);  // too soon: not looked at
  }
  return sampler.facts();
}

TEST(ThreadSampler, ThreadsThatReadAreBlocked) {
  const auto facts = seen(8, 0.05, 0.01, 'D', 10'000'000);
  ASSERT_EQ(facts.size(), 8u);
  EXPECT_NEAR(facts[0].blocked, 0.94, 0.01);
  EXPECT_EQ(facts[0].read_bytes, 40'000'000u);
  EXPECT_EQ(
      threads_line(facts),
      "8 threads at work: 5 % of their time running, 1 % ready without a core, 94 % blocked in reads from a disk, 0 % "
      "asleep; 80.0 MB/s from the disk");
  EXPECT_EQ(threads_verdict(facts, 24, true).find("fetch_bound (io_bound)"), 0u);
}

TEST(ThreadSampler, ThreadsThatComputeKeepTheCoresBusy) {
  EXPECT_EQ(
      threads_verdict(seen(4, 0.45, 0.5, 'R'), 4, false).find("prep_bound (io_bound), most likely: its threads keep"),
      0u);
  EXPECT_EQ(
      threads_verdict(seen(1, 0.99, 0, 'R'), 8, false).find("prep_bound (io_bound), most likely: one thread computes"),
      0u);
}

TEST(ThreadSampler, BusyThreadsOfAJobWithAModelMayBeItsSteps) {
  for (const auto& facts : {seen(4, 0.45, 0.5, 'R'), seen(1, 0.99, 0, 'R')})
    EXPECT_TRUE(threads_verdict(facts, 4, true).ends_with("threads do not show which"))
        << threads_verdict(facts, 4, true);
}

TEST(ThreadSampler, ThreadsThatSleepSayNothing) {
  const auto facts = seen(8, 0.001, 0, 'S');
  EXPECT_EQ(threads_line(facts), "");
  EXPECT_EQ(threads_verdict(facts, 8, false), "");
  EXPECT_EQ(to_json(facts)[0]["blocked_share"], 0.0);
  EXPECT_EQ(threads_verdict(seen(3, 0.2, 0, 'S'), 8, false), "") << "asleep on a network or on locks: nobody can tell";
}

}  // namespace
}  // namespace stoker::measure
