#include "stoker/loader/worker_count.h"

#include <gtest/gtest.h>

namespace stoker::loader {
namespace {

constexpr int kLook = 16;  // batches

int after_batches(WorkerCount& count, int active, const meter::WaitSplit& wait, std::uint64_t ready, int batches) {
  for (int i = 0; i < batches; ++i) active = count.after_batch(active, wait, 1'000'000, ready);
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
