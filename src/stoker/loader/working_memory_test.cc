#include "stoker/loader/working_memory.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/base/random.h"
#include "stoker/base/units.h"

namespace stoker::loader {
namespace {

void nobody() {}

TEST(WorkingMemory, GivesAPieceOfAtLeastWhatWasAskedFor) {
  WorkingMemory memory(16 * kMiB, 16 * kMiB, nobody);
  Workspace space;
  EXPECT_TRUE(space.scratch.take(1).empty()) << "nothing before it is asked for";
  for (const std::uint64_t bytes : {std::uint64_t{1}, 300 * kKiB, 3 * kMiB, 16 * kMiB, 100 * kKiB}) {
    memory.provide(space, bytes);
    EXPECT_GE(space.scratch.capacity_bytes(), bytes);
    EXPECT_LE(memory.used_bytes(), 16 * kMiB);
  }
  memory.give_back(space);
  memory.unmap_free();
  EXPECT_EQ(memory.used_bytes(), 0u);
}

TEST(WorkingMemory, AllowsOneSampleNoMoreThanCanBeMapped) {
  EXPECT_EQ(WorkingMemory(16 * kMiB, 5 * kMiB, nobody).most_bytes(), 5 * kMiB);
  EXPECT_EQ(WorkingMemory(5 * kMiB, 16 * kMiB, nobody).most_bytes(), 4 * kMiB) << "pages of 2 MiB";
  EXPECT_EQ(WorkingMemory(100 * kKiB + 5, kMiB, nobody).most_bytes(), 100 * kKiB);
}

TEST(WorkingMemory, KeepsAPieceUntilSomebodyWaits) {
  std::atomic<int> woken{0};
  WorkingMemory memory(8 * kMiB, 8 * kMiB, [&] { ++woken; });
  Workspace idle, large;
  memory.provide(idle, 3 * kMiB);
  memory.give_way(idle);
  EXPECT_NE(idle.arena.size(), 0u) << "nobody waits";
  std::thread other([&] { memory.provide(large, 7 * kMiB); });
  while (!memory.is_wanted() || woken == 0) std::this_thread::yield();
  memory.give_way(idle);
  other.join();
  EXPECT_EQ(idle.arena.size(), 0u);
  EXPECT_GE(large.scratch.capacity_bytes(), 7 * kMiB);
  EXPECT_EQ(woken, 1);
}

TEST(WorkingMemory, EndsAWaitWhenItIsStopped) {
  WorkingMemory memory(4 * kMiB, 4 * kMiB, nobody);
  Workspace holder, waiter;
  memory.provide(holder, 4 * kMiB);
  std::thread other([&] { EXPECT_THROW(memory.provide(waiter, 4 * kMiB), Error); });
  while (!memory.is_wanted()) std::this_thread::yield();
  memory.stop();
  other.join();
  EXPECT_FALSE(memory.is_wanted());
}

// Everybody gets what it asks for, large or small, and the limit holds at every moment.
TEST(WorkingMemory, ServesManyWhoTogetherWantFarMoreThanThereIs) {
  static constexpr std::uint64_t kLimit = 12 * kMiB;
  WorkingMemory memory(kLimit, kLimit, nobody);
  std::vector<std::thread> threads;
  for (std::uint64_t number = 0; number < 6; ++number) {
    threads.emplace_back([&memory, number] {
      Workspace space;
      Random random(1, 2, number, 3);
      for (int sample = 0; sample < 300; ++sample) {
        const std::uint64_t bytes = random.below(10) == 0 ? kLimit : 1 + random.below(4 << 20);
        if (random.below(2) == 0) memory.give_way(space);  // else somebody begins to wait a moment later
        space.scratch.reset();
        if (space.scratch.take(bytes - std::min<std::uint64_t>(bytes - 1, 64)).empty()) {
          memory.provide(space, bytes);
          ASSERT_GE(space.scratch.capacity_bytes(), bytes);
        }
        space.arena.data()[space.arena.size() - 1] = std::byte{1};
        ASSERT_LE(memory.used_bytes(), kLimit);
      }
      memory.give_back(space);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(memory.peak_bytes(), kLimit);
}

}  // namespace
}  // namespace stoker::loader
