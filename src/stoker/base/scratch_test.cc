#include "stoker/base/scratch.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Scratch, ReusesItsMemoryAndKeepsToTheBudget) {
  Budget budget(4 << 20);
  Scratch scratch(&budget);
  const auto first = scratch.take(100);
  const auto second = scratch.take(1 << 20);
  ASSERT_EQ(first.size(), 100u);
  ASSERT_EQ(second.size(), 1u << 20);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second.data()) % 64, 0u);
  std::memset(first.data(), 1, first.size());
  std::memset(second.data(), 2, second.size());
  EXPECT_TRUE(scratch.take(8 << 20).empty());
  scratch.reset();
  const std::uint64_t used = budget.used_bytes();
  EXPECT_EQ(scratch.take(1 << 20).size(), 1u << 20);
  EXPECT_EQ(budget.used_bytes(), used);
  scratch.release();
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(Scratch, RewindsToAMark) {
  Scratch scratch;
  const auto kept = scratch.take(64);
  const Scratch::Mark mark = scratch.mark();
  const auto first = scratch.take(1000);
  scratch.rewind(mark);
  EXPECT_EQ(scratch.take(1000).data(), first.data());
  EXPECT_NE(first.data(), kept.data());
}

TEST(Scratch, WorksInGivenMemoryAndNowhereElse) {
  alignas(64) std::array<std::byte, 4096> memory{};
  Scratch scratch;
  scratch.work_in(memory);
  EXPECT_EQ(scratch.capacity_bytes(), memory.size());
  const auto first = scratch.take(1000);
  EXPECT_GE(first.data(), memory.data());
  EXPECT_LE(first.data() + first.size(), memory.data() + memory.size());
  EXPECT_TRUE(scratch.take(4000).empty());
  scratch.reset();
  EXPECT_EQ(scratch.take(1000).data(), first.data());
  scratch.work_in({});
  EXPECT_TRUE(scratch.take(1).empty());
}

TEST(Scratch, SaysHowMuchMemoryWouldHaveBeenEnough) {
  alignas(64) std::array<std::byte, 4096> memory{};
  Scratch scratch;
  scratch.work_in(std::span(memory).first(1024));
  ASSERT_FALSE(scratch.take(500).empty());
  EXPECT_EQ(scratch.wanted_bytes(), 0u);
  EXPECT_TRUE(scratch.take(2000).empty());
  const std::size_t wanted = scratch.wanted_bytes();
  ASSERT_LE(wanted, memory.size());
  for (const std::size_t given : {wanted - 1, wanted}) {
    scratch.work_in(std::span(memory).first(given));
    ASSERT_FALSE(scratch.take(500).empty());
    EXPECT_EQ(!scratch.take(2000).empty(), given == wanted);
  }
}

TEST(Scratch, RefusesASampleThatExpectsMoreThanIsGiven) {
  alignas(64) std::array<std::byte, 4096> memory{};
  Scratch scratch;
  EXPECT_TRUE(scratch.expect(1 << 20)) << "one that grows has room";
  scratch.work_in(memory);
  EXPECT_TRUE(scratch.expect(4000));
  EXPECT_EQ(scratch.wanted_bytes(), 0u);
  EXPECT_FALSE(scratch.expect(5000));
  EXPECT_GE(scratch.wanted_bytes(), 5000u);
  scratch.reset();
  EXPECT_EQ(scratch.wanted_bytes(), 0u);
}

TEST(Budget, NeverPassesItsLimit) {
  Budget budget(100);
  EXPECT_TRUE(budget.try_take(60));
  EXPECT_FALSE(budget.try_take(41));
  EXPECT_TRUE(budget.try_take(40));
  EXPECT_FALSE(budget.try_take(1));
  budget.give_back(100);
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_EQ(budget.peak_bytes(), 100u);
  EXPECT_FALSE(budget.try_take(~std::uint64_t{0}));
}

}  // namespace
}  // namespace stoker
