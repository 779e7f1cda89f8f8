#include "stoker/plan/duration.h"

#include <gtest/gtest.h>

namespace stoker::plan {
namespace {

RateSpread sure(double per_s) {
  return {per_s * 0.95, per_s, per_s * 1.05, 1, false};
}

TEST(Duration, OfCaseBIs14DaysForLargeAnd61ForGiant) {
  const Job job{.images = 28.4e6, .budget_days = 15};
  const Duration large = duration_of(job, sure(23.51)), giant = duration_of(job, sure(5.40));
  EXPECT_NEAR(large.p50, 13.98, 0.01);
  EXPECT_NEAR(giant.p50, 60.9, 0.1);
  EXPECT_NEAR(large.images_per_day.p50, 2.03e6, 0.01e6);
  EXPECT_EQ(*large.verdict, BudgetVerdict::fits);
  EXPECT_EQ(*giant.verdict, BudgetVerdict::over);
  EXPECT_NEAR(*needed_per_s(job), 21.9, 0.05);
}

TEST(Duration, OfCaseCIs26Point7Days) {
  EXPECT_NEAR(days_of({.images = 32 * 4000.0}, 1 / 18.0), 26.7, 0.05);
}

TEST(Duration, IsShortWhereTheRateIsHigh) {
  const Duration duration = duration_of({.images = 1e6}, {50, 100, 200, 1, false});
  EXPECT_LT(duration.p10, duration.p50);
  EXPECT_LT(duration.p50, duration.p90);
  EXPECT_LT(duration.images_per_day.p10, duration.images_per_day.p90);
  EXPECT_FALSE(duration.verdict);
}

TEST(Duration, CountsEpoch0ColdApart) {
  const Job job{.images = 10 * 50000.0, .epoch_images = 50000, .cold_per_s = 110};
  const Duration duration = duration_of(job, sure(410));
  EXPECT_NEAR(*duration.epoch0 * 86400, 50000 / 110.0, 1e-6);
  EXPECT_NEAR(duration.training * 86400, 9 * 50000 / 410.0, 1e-6);
}

TEST(Duration, NeverTakesEpoch0AsFasterThanTheRest) {
  const Job job{.images = 1000, .epoch_images = 500, .cold_per_s = 1e6};
  EXPECT_NEAR(days_of(job, 10) * 86400, 100, 1e-9);
}

TEST(Duration, AddsValidationAndCheckpoints) {
  const Job job{
      .images = 36000, .epoch_images = 3600, .validation_s = 60, .checkpoint_s = 36, .checkpoint_every_s = 3600};
  const Duration duration = duration_of(job, sure(1));
  EXPECT_NEAR(duration.validation * 86400, 600, 1e-6);
  EXPECT_NEAR(duration.checkpoints * 86400, 360, 1e-6);
  EXPECT_NEAR(duration.p50 * 86400, 36000 + 600 + 360, 1e-6);
}

TEST(NeededRate, MeetsTheBudgetWithEverythingInIt) {
  Job job{
      .images = 1e6, .epoch_images = 1e5, .validation_s = 300, .checkpoint_s = 30, .cold_per_s = 20, .budget_days = 1};
  const std::optional<double> needed = needed_per_s(job);
  ASSERT_TRUE(needed);
  EXPECT_NEAR(days_of(job, *needed), 1, 1e-6);
}

TEST(NeededRate, IsNoneWhereValidationAloneIsTooLong) {
  EXPECT_FALSE(needed_per_s({.images = 1000, .epoch_images = 10, .validation_s = 3600, .budget_days = 1}));
}

TEST(Verdict, HasAWordForEachSideOfTheBudget) {
  const RateSpread rate{80, 100, 125, 1, false};
  const double middle = days_of({.images = 1e6}, 100);
  const auto verdict = [&](double times) {
    return *duration_of({.images = 1e6, .budget_days = times * middle}, rate).verdict;
  };
  EXPECT_EQ(verdict(1.3), BudgetVerdict::fits);
  EXPECT_EQ(verdict(1.1), BudgetVerdict::likely);
  EXPECT_EQ(verdict(0.9), BudgetVerdict::unlikely);
  EXPECT_EQ(verdict(0.7), BudgetVerdict::over);
}

}  // namespace
}  // namespace stoker::plan
