#include "stoker/base/random.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

// Known answers of the Random123 distribution (kat_vectors, philox4x32 10).
TEST(Philox, MatchesThePublishedVectors) {
  using Block = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, DependsOnSeedEpochSampleAndStreamOnly) {
  Random a(1, 2, 3, 4), again(1, 2, 3, 4);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(a.next(), again.next());
  EXPECT_NE(Random(1, 2, 3).next(), Random(1, 2, 4).next());
  EXPECT_NE(Random(1, 2, 3).next(), Random(1, 3, 3).next());
  EXPECT_NE(Random(1, 2, 3).next(), Random(2, 2, 3).next());
  EXPECT_NE(Random(1, 2, 3, 0).next(), Random(1, 2, 3, 1).next());
}

TEST(Random, IsUniform) {
  double sum = 0;
  int counts[10] = {};
  for (std::uint64_t id = 0; id < 100000; ++id) {
    Random random(42, 0, id);
    sum += random.uniform();
    ++counts[random.below(10)];
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.005);
  for (int count : counts) EXPECT_NEAR(count, 10000, 500);
}

}  // namespace
}  // namespace stoker
