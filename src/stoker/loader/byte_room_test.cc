#include "stoker/loader/byte_room.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/random.h"

namespace stoker::loader {
namespace {

using Reuse = ByteRoom::Reuse;

constexpr std::size_t kAlign = 64;

struct Held {
  ByteRoom::Block block;
  std::size_t bytes = 0;
};

// The plain model: one flag per unit of alignment.
class Model {
 public:
  explicit Model(std::size_t bytes) : used_(bytes / kAlign, false) {}

  static std::size_t units(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign; }
  void set(std::size_t at, std::size_t bytes, bool used) {
    for (std::size_t i = at / kAlign; i < at / kAlign + units(bytes); ++i) {
      ASSERT_NE(used_[i], used) << "the same bytes twice";
      used_[i] = used;
    }
  }
  bool has_run(std::size_t bytes) const {
    std::size_t run = 0, longest = 0;
    for (const bool used : used_) longest = std::max(longest, run = used ? 0 : run + 1);
    return longest >= units(bytes);
  }

 private:
  std::vector<bool> used_;
};

TEST(ByteRoom, GivesWhateverFreeRunIsLongEnoughAndNeverTheSameByteTwice) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed, 2, 3);
    const std::size_t capacity = 64 << 10, most_blocks = 3 + random.below(60);
    ByteRoom room(capacity, most_blocks, Reuse::anywhere, kAlign);
    Model model(room.capacity());
    std::vector<Held> held;
    std::byte* start = nullptr;
    std::uint64_t refused = 0;
    const std::uint32_t largest = seed % 2 == 0 ? 3000 : static_cast<std::uint32_t>(room.capacity());
    for (int i = 0; i < 3000; ++i) {
      const std::size_t bytes = 1 + random.below(largest);
      const bool expected = held.size() < most_blocks && model.has_run(bytes);
      const ByteRoom::Block block = room.take(bytes);
      ASSERT_EQ(block.data != nullptr, expected) << "seed " << seed << ", take " << i;
      if (block.data != nullptr) {
        if (start == nullptr) start = block.data;  // an empty room gives its first byte
        ASSERT_GE(block.data, start);
        model.set(static_cast<std::size_t>(block.data - start), bytes, true);
        held.push_back({block, bytes});
      } else {
        ++refused;
      }
      while (!held.empty() && random.below(100) < 50) {
        const std::size_t which = random.below(static_cast<std::uint32_t>(held.size()));
        model.set(static_cast<std::size_t>(held[which].block.data - start), held[which].bytes, false);
        room.give_back(held[which].block);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
      }
    }
    EXPECT_GT(refused, 0u);
    for (const Held& one : held) room.give_back(one.block);
    EXPECT_TRUE(room.is_empty());
    EXPECT_NE(room.take(room.capacity()).data, nullptr) << "what is empty is whole again";
  }
}

TEST(ByteRoom, InOrderNeverHandsOutTheSameByteTwiceAndComesBackWhole) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    ByteRoom room(1 << 20, 64, Reuse::in_order);
    std::vector<Held> held;
    Random random(seed, 2, 3);
    std::uint64_t taken = 0, refused = 0;
    for (int i = 0; i < 5000; ++i) {
      const std::size_t bytes = 1 + random.below(100000);
      if (const ByteRoom::Block block = room.take(bytes); block.data != nullptr) {
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
        room.give_back(held[which].block);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
      }
    }
    EXPECT_GT(taken, 500u);
    EXPECT_GT(refused, 100u);
    for (const Held& one : held) room.give_back(one.block);
    EXPECT_TRUE(room.is_empty());
    EXPECT_NE(room.take(room.capacity()).data, nullptr);
  }
}

// Rows whose length varies wait for each other: all blocks of a batch must fit once those before it are back.
TEST(ByteRoom, InOrderHoldsABatchWhateverWasThereBefore) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed, 0, 0);
    const std::uint32_t largest = 64 * (1 + random.below(50)), rows = 1 + random.below(20);
    ByteRoom room((rows + 1) * largest, 256, Reuse::in_order, kAlign);
    std::vector<ByteRoom::Block> before;
    for (int batch = 0; batch < 20; ++batch) {
      std::vector<ByteRoom::Block> now;
      while (now.size() < rows) {
        const ByteRoom::Block block = room.take(1 + random.below(largest));
        if (block.data != nullptr) {
          now.push_back(block);
          continue;
        }
        ASSERT_FALSE(before.empty()) << "seed " << seed << ": row " << now.size() << " would wait forever";
        const std::size_t which = random.below(static_cast<std::uint32_t>(before.size()));
        room.give_back(before[which]);
        before.erase(before.begin() + static_cast<std::ptrdiff_t>(which));
      }
      for (const ByteRoom::Block& block : before) room.give_back(block);
      before = now;
    }
  }
}

TEST(ByteRoom, GivesItsWholeCapacityWhenEmpty) {
  for (const Reuse reuse : {Reuse::anywhere, Reuse::in_order}) {
    ByteRoom room(1 << 20, 8, reuse);
    for (int i = 0; i < 3; ++i) {
      const ByteRoom::Block all = room.take(room.capacity());
      ASSERT_NE(all.data, nullptr);
      EXPECT_EQ(room.take(1).data, nullptr);
      room.give_back(all);
      const ByteRoom::Block some = room.take(5000);
      ASSERT_NE(some.data, nullptr);
      room.give_back(some);
    }
  }
}

TEST(ByteRoom, RoomBehindASlowBlockComesBackAtOnceOrInOrder) {
  for (const Reuse reuse : {Reuse::anywhere, Reuse::in_order}) {
    ByteRoom room(4096 * 4, 8, reuse);
    const ByteRoom::Block slow = room.take(4096), b = room.take(4096), c = room.take(4096);
    ASSERT_NE(c.data, nullptr);
    room.give_back(b);
    room.give_back(c);
    const ByteRoom::Block later = room.take(3 * 4096);
    EXPECT_EQ(later.data != nullptr, reuse == Reuse::anywhere);
    room.give_back(slow);
    if (later.data == nullptr) {
      EXPECT_NE(room.take(3 * 4096).data, nullptr);
    }
  }
}

}  // namespace
}  // namespace stoker::loader
