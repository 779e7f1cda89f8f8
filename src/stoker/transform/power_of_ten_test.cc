#include "stoker/transform/power_of_ten.h"

#include <cmath>

#include <gtest/gtest.h>

namespace stoker::transform {
namespace {

TEST(PowerOfTen, HasTheBitsOfTorch) {
  const struct {
    float x, torchs;  // 10.0 ** torch.tensor(x), of torch 2.13 with AVX-512
  } kRows[] = {{0x1.d1bd7cp-5F, 0x1.23ce2p+0F},   {0x1.bb594ep-4F, 0x1.48752cp+0F}, {0x1.87d946p-3F, 0x1.8db72p+0F},
               {0x1.57b512p-2F, 0x1.153e6p+1F},   {0x1.ba3abp-2F, 0x1.59ffacp+1F},  {0x1.f353c4p-2F, 0x1.89665cp+1F},
               {0x1.1e9bfep-10F, 0x1.00a532p+0F}, {0x1.17e456p-1F, 0x1.c2af92p+1F}, {0x1.182bfcp+0F, 0x1.8db6d8p+3F}};
  for (const auto& row : kRows) EXPECT_EQ(power_of_ten(row.x), row.torchs) << row.x;
  // The first six are those that the correctly rounded power misses.
  for (int i = 0; i < 6; ++i) {
    EXPECT_NE(static_cast<float>(std::pow(10.0, static_cast<double>(kRows[i].x))), kRows[i].torchs) << kRows[i].x;
  }
}

TEST(PowerOfTen, IsWithinOneUnitInTheLastPlace) {
  for (int i = -3000; i <= 3000; ++i) {
    const float x = static_cast<float>(i) / 100, power = power_of_ten(x);
    const double exact = std::pow(10.0, static_cast<double>(x));
    EXPECT_NEAR(power, exact, exact * 0x1p-23) << x;
  }
}

}  // namespace
}  // namespace stoker::transform
