#include "stoker/base/permutation.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker {
namespace {

TEST(Permutation, VisitsEveryElementOnceAndInverts) {
  for (std::uint64_t size : {0, 1, 2, 3, 4, 5, 16, 17, 1000, 65536, 65537}) {
    const Permutation p(size, 42);
    std::vector<int> seen(size);
    for (std::uint64_t i = 0; i < size; ++i) {
      const std::uint64_t e = p(i);
      ASSERT_LT(e, size);
      ++seen[e];
      ASSERT_EQ(p.inverse(e), i);
    }
    for (int count : seen) ASSERT_EQ(count, 1);
  }
}

TEST(Permutation, KeysGiveDifferentOrders) {
  const Permutation a(1000, 1), b(1000, 2);
  int same = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) same += a(i) == b(i);
  EXPECT_LT(same, 12);  // one fixed point is expected; 12 has a chance below 1e-9
}

// The place of an element must not tell where it went: chi-square over an 8x8 table of (place, element) blocks.
TEST(Permutation, IsEvenlySpread) {
  for (std::uint64_t size : {6400, 51000, 100003}) {
    double worst = 0;
    for (std::uint64_t key = 0; key < 20; ++key) {
      const Permutation p(size, key);
      double counts[8][8] = {};
      for (std::uint64_t i = 0; i < size; ++i) ++counts[i * 8 / size][p(i) * 8 / size];
      const double expected = static_cast<double>(size) / 64;
      double chi = 0;
      for (auto& row : counts)
        for (double c : row) chi += (c - expected) * (c - expected) / expected;
      worst = std::max(worst, chi);
    }
    EXPECT_LT(worst, 100) << size;  // 49 degrees of freedom: 100 has a chance of about 2e-5 a key
  }
}

// Neighbours must not stay neighbours.
TEST(Permutation, SeparatesNeighbours) {
  const std::uint64_t size = 100000;
  const Permutation p(size, 7);
  int near = 0;
  for (std::uint64_t i = 0; i + 1 < size; ++i) {
    const auto a = static_cast<std::int64_t>(p(i)), b = static_cast<std::int64_t>(p(i + 1));
    near += std::abs(a - b) < 100;
  }
  EXPECT_NEAR(near, 200, 80);
}

TEST(Permutation, SeeksInBillionsWithoutMemory) {
  const Permutation p(Permutation::kMaxSize, 3);
  for (std::uint64_t i : {std::uint64_t{0}, std::uint64_t{123456789012}, Permutation::kMaxSize - 1}) {
    EXPECT_EQ(p.inverse(p(i)), i);
  }
  EXPECT_THROW(Permutation(Permutation::kMaxSize + 1, 0), Error);
}

}  // namespace
}  // namespace stoker
