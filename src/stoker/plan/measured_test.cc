#include "stoker/plan/measured.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace stoker::plan {
namespace {

std::vector<double> blocks(std::mt19937& chance, double mean, double deviation, int count) {
  std::normal_distribution<double> draw(mean, deviation);
  std::vector<double> all;
  for (int i = 0; i < count; ++i) all.push_back(draw(chance));
  return all;
}

TEST(Spread, IsNarrowForSteadyBlocksAndWideForRestlessOnes) {
  std::mt19937 chance(1);
  const Rate steady[] = {rate_of_blocks(blocks(chance, 100, 0.5, 10))};
  const Rate restless[] = {rate_of_blocks(blocks(chance, 100, 20, 10))};
  const RateSpread a = spread_of(steady), b = spread_of(restless);
  EXPECT_LT(a.p90 / a.p10, 1.15);
  EXPECT_GT(b.p90 / b.p10, 1.3);
  EXPECT_LT(a.p10, a.p50);
  EXPECT_LT(a.p50, a.p90);
  EXPECT_FALSE(a.assumed);
}

TEST(Spread, GrowsWithTheDifferenceBetweenRuns) {
  const Rate alike[] = {{100, 0.5, 0.01}, {101, 0.5, 0.01}, {99, 0.5, 0.01}, {100, 0.5, 0.01}};
  const Rate apart[] = {{100, 0.5, 0.01}, {130, 0.5, 0.01}, {75, 0.5, 0.01}, {100, 0.5, 0.01}};
  const RateSpread a = spread_of(alike), b = spread_of(apart);
  EXPECT_LT(a.p90 / a.p10, 1.12);
  EXPECT_GT(b.p90 / b.p10, 1.3);
  EXPECT_NEAR(a.p50, 100, 1);
}

TEST(Spread, SaysThatItsWidthIsAssumedWhereNothingWasMeasured) {
  const Rate one[] = {{23.51}};
  const RateSpread spread = spread_of(one);
  EXPECT_TRUE(spread.assumed);
  EXPECT_NEAR(spread.p50, 23.51, 1e-9);
  EXPECT_GT(spread.p90 / spread.p10, 1.1);
}

TEST(Spread, TakesBlocksThatDriftAsLessSureThanBlocksThatDoNot) {
  const std::vector<double> drifting = {90, 92, 94, 96, 98, 102, 104, 106, 108, 110};
  const std::vector<double> mixed = {90, 110, 92, 108, 94, 106, 96, 104, 98, 102};
  EXPECT_GT(*rate_of_blocks(drifting).standard_error, 1.5 * *rate_of_blocks(mixed).standard_error);
}

// Runs differ by 3 % from one another and their blocks by 5 %: the interval of one run of ten blocks holds for the
// others about as often as it says.
TEST(Spread, OfOneRunHoldsForMostOthers) {
  std::mt19937 chance(7);
  std::normal_distribution<double> between(0, 0.03);
  int held = 0, all = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const Rate run[] = {rate_of_blocks(blocks(chance, 100 * std::exp(between(chance)), 5, 10))};
    const RateSpread spread = spread_of(run);
    for (int other = 0; other < 5; ++other, ++all) {
      const double seen = rate_of_blocks(blocks(chance, 100 * std::exp(between(chance)), 5, 10)).per_s;
      held += seen >= spread.p10 && seen <= spread.p90;
    }
  }
  const double share = static_cast<double>(held) / all;
  EXPECT_GT(share, 0.70);
  EXPECT_LT(share, 0.95);
}

}  // namespace
}  // namespace stoker::plan
