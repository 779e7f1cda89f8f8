#include "stoker/loader/worker_count.h"

#include <gtest/gtest.h>

namespace stoker::loader {
namespace {

constexpr int kLook = 16;  // batches

constexpr std::int64_t kStepNs = 1'000'000;

int after_batches(WorkerCount& count, int active, const meter::WaitSplit& wait, std::uint64_t ready, int batches) {
  for (int i = 0; i < batches; ++i) {
    active = count.after_batch(active, {.wait = wait, .compute_ns = kStepNs, .ready_batches = ready});
  }
  return active;
}

TEST(WorkerCount, FallsByOneWhileTheConsumerIsTheLimit) {
  WorkerCount count(8, 2);
  EXPECT_EQ(after_batches(count, 8, {}, 2, kLook - 1), 8) << "not before it has seen enough";
  EXPECT_EQ(after_batches(count, 8, {}, 2, 1), 7);
  EXPECT_EQ(after_batches(count, 7, {}, 2, 20 * kLook), 1) << "one always works";
}

TEST(WorkerCount, StaysWhileBatchesAreNotReadyAhead) {
  WorkerCount count(8, 2);
  EXPECT_EQ(after_batches(count, 5, {}, 1, 4 * kLook), 5);
}

TEST(WorkerCount, StaysWhileOneLessWouldHardlyKeepUp) {
  WorkerCount count(4, 2);
  std::int64_t busy_ns = 0;
  const auto after_steps = [&](int active, double busy_workers) {
    for (int i = 0; i < kLook; ++i) {
      busy_ns += static_cast<std::int64_t>(busy_workers * kStepNs);
      active = count.after_batch(active, {.compute_ns = kStepNs, .busy_ns = busy_ns, .ready_batches = 2});
    }
    return active;
  };
  EXPECT_EQ(after_steps(2, 1.4), 2) << "the one that is left would be the limit";
  EXPECT_EQ(after_steps(2, 0.9), 2) << "or come late now and then";
  EXPECT_EQ(after_steps(4, 1.4), 3);
  EXPECT_EQ(after_steps(3, 1.4), 2);
  EXPECT_EQ(after_steps(2, 0.5), 1);
}

TEST(WorkerCount, RisesToTheMostAtOnceWhenTheConsumerWaitsForWorkers) {
  WorkerCount count(8, 2);
  EXPECT_EQ(after_batches(count, 2, {.prep_ns = 100'000}, 2, kLook), 8);
}

TEST(WorkerCount, StaysWhenTheConsumerWaitsForTheStorage) {
  WorkerCount count(8, 2);
  EXPECT_EQ(after_batches(count, 2, {.fetch_ns = 100'000}, 2, 4 * kLook), 2) << "more workers would not help";
}

}  // namespace
}  // namespace stoker::loader
