#include "stoker/plan/prices.h"

#include <gtest/gtest.h>

namespace stoker::plan {
namespace {

TEST(Prices, OfAnEpochAndOfTheRunAreRequestsAndBytesTimesTheirPrice) {
  // 50,000 objects of 25 GB, 90 epochs. One epoch: 50 x 0.0004 + 25 x 0.09 = 2.27.
  constexpr double kSamples = 50'000, kBytes = 25e9, kEpoch = 2.27;
  struct Row {
    double per_1000_requests, per_gb;
    std::optional<double> cache_limit_bytes;
    double epochs;
    StoreAccess access;
    double first_epoch, later_epoch, run;
  };
  const Row rows[] = {
      {0.0004, 0.09, {}, 90, StoreAccess::from_store, kEpoch, kEpoch, 90 * kEpoch},
      {0.0004, 0.09, {}, 90, StoreAccess::disk_cache, kEpoch, 0, kEpoch},
      {0.0004, 0.09, {}, 90, StoreAccess::staged, kEpoch, 0, kEpoch},
      {0.0004, 0.09, 10e9, 90, StoreAccess::disk_cache, kEpoch, 0.6 * kEpoch, (1 + 89 * 0.6) * kEpoch},
      {0.0004, 0.09, 100e9, 90, StoreAccess::disk_cache, kEpoch, 0, kEpoch},
      {0.0004, 0.09, 0.0, 90, StoreAccess::disk_cache, kEpoch, kEpoch, 90 * kEpoch},
      {0.0004, 0, {}, 90, StoreAccess::from_store, 0.02, 0.02, 1.8},
      {0, 0.09, {}, 90, StoreAccess::from_store, 2.25, 2.25, 202.5},
      {0.0004, 0.09, {}, 0.5, StoreAccess::from_store, kEpoch, kEpoch, 0.5 * kEpoch},
      {0.0004, 0.09, {}, 0.5, StoreAccess::disk_cache, kEpoch, 0, 0.5 * kEpoch},
      {0.0004, 0.09, {}, 0.5, StoreAccess::staged, kEpoch, 0, kEpoch},  // all of it is copied
      {0.0004, 0.09, {}, 2.5, StoreAccess::from_store, kEpoch, kEpoch, 2.5 * kEpoch},
  };
  for (const Row& row : rows) {
    const StorePrices prices{row.per_1000_requests, row.per_gb, row.cache_limit_bytes};
    const auto costs = store_costs(prices, kSamples, kBytes, {.images = row.epochs * kSamples});

    const StoreCost& cost = costs[static_cast<std::size_t>(row.access)];
    EXPECT_EQ(cost.access, row.access);
    EXPECT_NEAR(cost.first_epoch.cost, row.first_epoch, 1e-9) << name(row.access) << row.epochs;
    EXPECT_NEAR(cost.later_epoch.cost, row.later_epoch, 1e-9) << name(row.access) << row.epochs;
    EXPECT_NEAR(cost.run->cost, row.run, 1e-9) << name(row.access) << row.epochs;
  }
}

TEST(Prices, CountTheRequestsAndBytesOfTheRun) {
  const auto costs = store_costs({0.0004, 0.09, 5e9}, 1000, 10e9, {.images = 3000});

  EXPECT_NEAR(costs[0].run->requests, 3000, 1e-9);
  EXPECT_NEAR(costs[0].run->bytes, 30e9, 1);
  EXPECT_NEAR(costs[1].run->requests, 2000, 1e-9);
  EXPECT_NEAR(costs[2].run->requests, 1000, 1e-9);
}

TEST(Prices, WithoutAJobAreThoseOfEpochs) {
  for (const StoreCost& cost : store_costs({0.0004, 0.09, {}}, 1000, 1e9, {})) {
    EXPECT_GT(cost.first_epoch.cost, 0);
    EXPECT_FALSE(cost.run);
  }
}

}  // namespace
}  // namespace stoker::plan
