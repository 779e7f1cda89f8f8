#include "stoker/transform/half.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/transform/store.h"

namespace stoker::transform {
namespace {

TEST(Half, ConvertsRowsAsOneByOne) {
  // Every half, the middle between it and the next, one step beside both, and floats of all sizes.
  std::vector<float> values;
  for (std::uint32_t half = 0; half <= 0xFFFF; ++half) {
    const auto bits = std::bit_cast<std::uint32_t>(from_float16(static_cast<std::uint16_t>(half)));
    for (const std::uint32_t step : {0u, 1u, 0xFFFu, 0x1000u, 0x1001u}) {
      values.push_back(std::bit_cast<float>(bits + step));
    }
    values.push_back(std::bit_cast<float>(half * 65521u));
  }
  values.push_back(1.0F);  // not a whole vector
  std::vector<std::uint16_t> converted(values.size());
  convert(values.data(), values.size(), DType::f16, reinterpret_cast<std::byte*>(converted.data()));
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(converted[i], to_float16(values[i])) << values[i];
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(to_float16(1.0F), 0x3C00);
  EXPECT_EQ(to_float16(-2.0F), 0xC000);
  EXPECT_EQ(to_float16(1.0F + 0x1p-11F), 0x3C00);      // tie, down to even
  EXPECT_EQ(to_float16(1.0F + 3 * 0x1p-11F), 0x3C02);  // tie, up to even
  EXPECT_EQ(to_float16(65504.0F), 0x7BFF);
  EXPECT_EQ(to_float16(65519.0F), 0x7BFF);
  EXPECT_EQ(to_float16(65520.0F), 0x7C00);
  EXPECT_EQ(to_float16(1e9F), 0x7C00);
  EXPECT_EQ(to_float16(0x1p-24F), 0x0001);
  EXPECT_EQ(to_float16(0x1p-25F), 0x0000);
  EXPECT_EQ(to_float16(3 * 0x1p-25F), 0x0002);
  EXPECT_EQ(to_float16(-0.0F), 0x8000);
  EXPECT_EQ(to_float16(std::numeric_limits<float>::quiet_NaN()) & 0x7E00, 0x7E00);
  EXPECT_EQ(to_bfloat16(1.0F), 0x3F80);
  EXPECT_EQ(to_bfloat16(1.0F + 0x1p-8F), 0x3F80);
  EXPECT_EQ(to_bfloat16(1.0F + 3 * 0x1p-8F), 0x3F82);
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::infinity()), 0x7F80);
  EXPECT_TRUE(std::isnan(from_bfloat16(to_bfloat16(std::numeric_limits<float>::quiet_NaN()))));
  for (std::uint32_t half = 0; half < 0x7C00; ++half) {
    ASSERT_EQ(to_float16(from_float16(static_cast<std::uint16_t>(half))), half);
  }
}

}  // namespace
}  // namespace stoker::transform
