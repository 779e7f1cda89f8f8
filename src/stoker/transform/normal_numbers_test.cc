#include "stoker/transform/normal_numbers.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/random.h"
#include "stoker/transform/without_wide_kernels_test.h"

namespace stoker::transform {
namespace {

std::vector<float> drawn(std::uint64_t key, std::size_t count) {
  NormalNumbers numbers(key);
  std::vector<float> all(count);
  std::generate(all.begin(), all.end(), [&] { return numbers.next(); });
  return all;
}

TEST(NormalNumbers, AreBoxAndMullersOfTheCounterGenerator) {
  for (const std::uint64_t key : {0ull, 1ull, 0x123456789ABCDEFull}) {
    const std::vector<float> numbers = drawn(key, 1 << 18);
    Random random(key, 0, 0);
    for (std::size_t i = 0; i < numbers.size(); i += 2) {
      const double radius = std::sqrt(-2 * std::log((random.next() + 1.0) * 0x1p-32));
      const double angle = 2 * std::numbers::pi * random.uniform();
      ASSERT_NEAR(numbers[i], radius * std::cos(angle), 3e-7 * radius) << i;
      ASSERT_NEAR(numbers[i + 1], radius * std::sin(angle), 3e-7 * radius) << i;
    }
  }
}

TEST(NormalNumbers, AreTheSameWithAndWithoutWideKernels) {
  const std::vector<float> wide = drawn(7, 10000);
  const WithoutWideKernels without;
  EXPECT_EQ(drawn(7, 10000), wide);
}

TEST(NormalNumbers, AreTheSameByBlocks) {
  const std::vector<float> one_by_one = drawn(7, 3 * NormalNumbers::kBlock);
  NormalNumbers numbers(7);
  for (std::size_t block = 0; block < 3; ++block) {
    const float* const some = numbers.next_block();
    EXPECT_TRUE(std::equal(some, some + NormalNumbers::kBlock, one_by_one.data() + block * NormalNumbers::kBlock));
  }
}

TEST(NormalNumbers, HaveTheMomentsOfANormalDistribution) {
  const std::vector<float> numbers = drawn(3, 1 << 20);
  double moments[4] = {};
  for (const double x : numbers) {
    double power = x;
    for (double& moment : moments) moment += power / static_cast<double>(numbers.size()), power *= x;
  }
  EXPECT_NEAR(moments[0], 0, 0.005);
  EXPECT_NEAR(moments[1], 1, 0.007);
  EXPECT_NEAR(moments[2], 0, 0.02);
  EXPECT_NEAR(moments[3], 3, 0.05);
  const auto beyond = [&](float limit) {
    return std::count_if(numbers.begin(), numbers.end(), [&](float x) { return std::abs(x) > limit; }) /
           static_cast<double>(numbers.size());
  };
  EXPECT_NEAR(beyond(1), 0.3173, 0.003);
  EXPECT_NEAR(beyond(3), 0.0027, 0.0003);
}

}  // namespace
}  // namespace stoker::transform
