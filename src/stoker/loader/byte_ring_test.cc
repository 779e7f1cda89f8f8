#include "stoker/loader/byte_ring.h"

#include <algorithm>
#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/random.h"

namespace stoker::loader {
namespace {

TEST(ByteRing, NeverHandsOutTheSameByteTwice) {
  ByteRing ring(1 << 20, 64);
  struct Held {
    ByteRing::Block block;
    std::size_t bytes;
  };
  std::vector<Held> held;
  Random random(1, 2, 3);
  std::uint64_t taken = 0, refused = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::size_t bytes = 1 + random.below(100000);
    if (const ByteRing::Block block = ring.take(bytes); block.data != nullptr) {
      for (const Held& other : held) {
        ASSERT_TRUE(block.data + bytes <= other.block.data || other.block.data + other.bytes <= block.data);
      }
      held.push_back({block, bytes});
      ++taken;
    } else {
      ++refused;
    }
    if (!held.empty() && random.below(5) < 2) {
      const std::size_t which = random.below(static_cast<std::uint32_t>(std::min<std::size_t>(held.size(), 4)));
      ring.give_back(held[which].block);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
  EXPECT_GT(taken, 1000u);
  EXPECT_GT(refused, 100u);
  for (const Held& h : held) ring.give_back(h.block);
  EXPECT_TRUE(ring.is_empty());
}

TEST(ByteRing, GivesItsWholeCapacityWhenEmpty) {
  ByteRing ring(1 << 20, 8);
  for (int i = 0; i < 3; ++i) {
    const ByteRing::Block all = ring.take(ring.capacity());
    ASSERT_NE(all.data, nullptr);
    EXPECT_EQ(ring.take(1).data, nullptr);
    ring.give_back(all);
    const ByteRing::Block some = ring.take(5000);
    ASSERT_NE(some.data, nullptr);
    ring.give_back(some);
  }
}

TEST(ByteRing, RoomComesBackInOrder) {
  ByteRing ring(4096 * 4, 8);
  const ByteRing::Block a = ring.take(4096), b = ring.take(4096), c = ring.take(4096);
  ASSERT_NE(c.data, nullptr);
  ring.give_back(b);
  EXPECT_EQ(ring.take(8192).data, nullptr);
  ring.give_back(a);
  EXPECT_NE(ring.take(4096).data, nullptr);
  ring.give_back(c);
}

}  // namespace
}  // namespace stoker::loader
