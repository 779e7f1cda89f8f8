#include "stoker/meter/confidence.h"

#include <vector>

#include <gtest/gtest.h>

namespace stoker::meter {
namespace {

TEST(StudentsT, IsThatOfTheTablesAndOfTheNormalDistributionInTheEnd) {
  EXPECT_NEAR(t90(1), 3.078, 1e-3);
  EXPECT_NEAR(t95(4), 2.132, 1e-3);
  EXPECT_NEAR(t975(30), 2.042, 1e-3);
  // Beyond the tables, where they go on smoothly.
  EXPECT_NEAR(t90(20), 1.325, 5e-3);
  EXPECT_NEAR(t95(20), 1.725, 1e-2);
  EXPECT_NEAR(t975(60), 2.000, 5e-3);
  EXPECT_NEAR(t975(1e9), 1.960, 1e-3);
  EXPECT_EQ(t95(0.2), t95(1));
}

TEST(Confidence, NeedsFourBlocksAndWidensWithSpread) {
  EXPECT_FALSE(half_width(std::vector<double>{1, 2, 3}));
  EXPECT_NEAR(*half_width(std::vector<double>{1, 2, 3, 4}), 3.182 * 1.29099 / 2, 1e-3);
  EXPECT_EQ(block_steps(1000, 64, 32), 64u);
  EXPECT_EQ(block_steps(3000, 8, 4), 100u);
}

}  // namespace
}  // namespace stoker::meter
