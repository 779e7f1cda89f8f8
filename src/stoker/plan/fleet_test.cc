#include "stoker/plan/fleet.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <gtest/gtest.h>

namespace stoker::plan {
namespace {

// 1,000,000 samples of 100 KB; a node trains on 1,000 a second.
constexpr double kImages = 1e6, kTotal = 100e9, kEach = 1000;

FleetInput nodes_of(double per_s) {
  return {.samples = kImages, .bytes = kTotal, .node = {.per_s = per_s}};
}

FleetRow row_in(const Fleet& fleet, StoreAccess access) {
  return *std::ranges::find(fleet.rows, access, &FleetRow::access);
}

FleetRow row_for(const FleetInput& input, double nodes, StoreAccess access) {
  return row_in(plan_fleet(input, std::array{nodes}), access);
}

TEST(Fleet, AnEpochTakesAsLongAsItsSlowestLimit) {
  struct Case {
    const char* what;
    double nodes;
    StoreAccess access;
    FleetNode node;
    FleetStore store;
    FleetLimit limit;
    double seconds;
  };
  const Case cases[] = {
      {"one node", 1, StoreAccess::from_store, {kEach}, {}, FleetLimit::node, 1000},
      {"its accelerator",
       1,
       StoreAccess::from_store,
       {kEach, FleetLimit::accelerator},
       {},
       FleetLimit::accelerator,
       1000},
      {"five nodes still are fed", 5, StoreAccess::from_store, {kEach}, {}, FleetLimit::node, 200},
      {"six ask for more than 5,500 a second",
       6,
       StoreAccess::from_store,
       {kEach},
       {},
       FleetLimit::store_requests,
       kImages / 5500},
      {"a thousand are no faster",
       1000,
       StoreAccess::from_store,
       {kEach},
       {},
       FleetLimit::store_requests,
       kImages / 5500},
      {"ten prefixes", 40, StoreAccess::from_store, {kEach}, {.prefixes = 10}, FleetLimit::node, 25},
      {"the store's bandwidth",
       5,
       StoreAccess::from_store,
       {kEach},
       {.bytes_per_s = 0.2e9},
       FleetLimit::store_bandwidth,
       500},
      {"the NIC", 5, StoreAccess::from_store, {.per_s = kEach, .nic_bytes_per_s = 50e6}, {}, FleetLimit::nic, 400},
      {"fetching", 5, StoreAccess::from_store, {.per_s = kEach, .fetch_per_s = 250}, {}, FleetLimit::fetch, 800},
      {"no disk is used without a cache",
       1,
       StoreAccess::from_store,
       {.per_s = kEach, .disk_bytes_per_s = 1e6},
       {},
       FleetLimit::node,
       1000},
      {"the disk of the cache",
       1,
       StoreAccess::disk_cache,
       {.per_s = kEach, .disk_bytes_per_s = 50e6},
       {},
       FleetLimit::disk,
       2000},
      {"the disk of the copy",
       10,
       StoreAccess::staged,
       {.per_s = kEach, .disk_bytes_per_s = 50e6},
       {},
       FleetLimit::disk,
       200},
      {"a copy asks nobody", 1000, StoreAccess::staged, {kEach}, {}, FleetLimit::node, 1},
  };
  for (const Case& one : cases) {
    FleetInput input = nodes_of(kEach);
    input.node = one.node;
    input.store = one.store;

    const FleetEpoch last = row_for(input, one.nodes, one.access).last;

    EXPECT_EQ(name(last.limit), name(one.limit)) << one.what;
    EXPECT_NEAR(last.seconds, one.seconds, 1e-9 * one.seconds) << one.what;
    EXPECT_NEAR(last.per_s, kImages / one.seconds, 1e-6 * last.per_s) << one.what;
  }
}

TEST(Fleet, CachesFillByOneShareOfTheDataInEachEpoch) {
  struct Case {
    double nodes, epochs, cache_bytes, second_misses, last_misses;
  };
  const Case cases[] = {
      {1, 90, kTotal, 0, 0},
      {1, 90, 0.4 * kTotal, 0.6, 0.6},
      {1, 90, 0, 1, 1},
      {2, 3, kTotal, 0.5, 0.25},
      {4, 2, kTotal, 0.75, 0.75},
      {64, 90, kTotal, 63.0 / 64, std::pow(63.0 / 64, 89)},
      {64, 90, 0.1 * kTotal, 63.0 / 64, 0.9},
      {4, 1, kTotal, 0.75, 1},  // the last epoch is the first
  };
  for (const Case& one : cases) {
    FleetInput input = nodes_of(kEach);
    input.node.cache_bytes = one.cache_bytes;
    input.epochs = one.epochs;

    const FleetRow row = row_for(input, one.nodes, StoreAccess::disk_cache);

    EXPECT_NEAR(row.first.use.requests, kImages, 1e-3) << one.nodes;
    EXPECT_NEAR(row.second.use.requests, one.second_misses * kImages, 1e-3) << one.nodes;
    EXPECT_NEAR(row.last.use.bytes, one.last_misses * kTotal, 1) << one.nodes << " " << one.cache_bytes;
  }
}

TEST(Fleet, CachesOfSamplesThatStayOnTheirNodeFillInOneEpoch) {
  struct Case {
    double nodes, cache_bytes, misses;
  };
  const Case cases[] = {{2, kTotal, 0}, {2, 0.5 * kTotal, 0}, {2, 0.2 * kTotal, 0.6}, {64, kTotal / 64, 0}, {64, 0, 1}};
  for (const Case& one : cases) {
    FleetInput input = nodes_of(kEach);
    input.node.cache_bytes = one.cache_bytes;
    input.epochs = 90;

    const FleetRow row = row_for(input, one.nodes, StoreAccess::cache_by_node);

    EXPECT_NEAR(row.first.use.requests, kImages, 1e-3) << one.nodes;
    EXPECT_NEAR(row.second.use.requests, one.misses * kImages, 1e-3) << one.nodes << " " << one.cache_bytes;
    EXPECT_NEAR(row.last.use.requests, one.misses * kImages, 1e-3) << one.nodes << " " << one.cache_bytes;
  }
  EXPECT_EQ(plan_fleet(nodes_of(kEach), std::array{1.0}).rows.size(), 3u);  // one node has no other order
  EXPECT_EQ(plan_fleet(nodes_of(kEach), std::array{2.0}).rows.size(), 4u);
}

TEST(Fleet, OneNodeCostsWhatTheCostsOfAStoreSay) {
  const StorePrices prices{0.0004, 0.09, 40e9};
  for (const double epochs : {0.5, 1.0, 2.0, 90.0}) {
    FleetInput input = nodes_of(kEach);
    input.node.cache_bytes = 40e9;
    input.prices = prices;
    input.epochs = epochs;

    const Fleet fleet = plan_fleet(input, std::array{1.0});

    for (const StoreCost& cost : store_costs(prices, kImages, kTotal, {.images = epochs * kImages})) {
      const FleetRow row = row_in(fleet, cost.access);
      EXPECT_NEAR(row.run_use.cost, cost.run->cost, 1e-6) << name(cost.access) << epochs;
      EXPECT_NEAR(row.run_use.requests, cost.run->requests, 1e-3) << name(cost.access) << epochs;
      EXPECT_NEAR(row.run_use.bytes, cost.run->bytes, 10) << name(cost.access) << epochs;
      EXPECT_NEAR(row.first.use.cost, cost.first_epoch.cost, 1e-6) << name(cost.access);
    }
  }
}

TEST(Fleet, EachNodeCopiesAllBeforeItTrains) {
  FleetInput input = nodes_of(kEach);
  input.node.nic_bytes_per_s = 1e9;
  input.epochs = 3;

  const FleetRow few = row_for(input, 2, StoreAccess::staged), many = row_for(input, 100, StoreAccess::staged);

  EXPECT_NEAR(few.first.use.bytes, 2 * kTotal, 1);
  EXPECT_NEAR(few.first.seconds, 2 * kImages / 5500 + 500, 1e-6);  // the requests take longer than the NIC
  EXPECT_EQ(few.first.limit, FleetLimit::node);                    // and training longer than both
  EXPECT_NEAR(many.first.seconds, 100 * kImages / 5500 + 10, 1e-6);
  EXPECT_EQ(many.first.limit, FleetLimit::store_requests);
  EXPECT_NEAR(many.run_seconds, 100 * kImages / 5500 + 30, 1e-6);
  EXPECT_EQ(many.last.use.requests, 0);
}

TEST(Fleet, LargeObjectsAreCopiedInPieces) {
  FleetInput input{.samples = 10, .bytes = 10 * 4 * kPieceBytes, .node = {.per_s = 1}};

  EXPECT_NEAR(row_for(input, 3, StoreAccess::staged).first.use.requests, 120, 1e-9);
}

TEST(Fleet, TheStoreIsFullWhereItsNodesAskForWhatItGives) {
  FleetInput input = nodes_of(kEach);
  EXPECT_NEAR(*plan_fleet(input, {}).full_at, 5.5, 1e-9);
  EXPECT_EQ(plan_fleet(input, {}).full_of, FleetLimit::store_requests);

  input.store.bytes_per_s = 0.2e9;  // 2,000 samples
  EXPECT_NEAR(*plan_fleet(input, {}).full_at, 2, 1e-9);
  EXPECT_EQ(plan_fleet(input, {}).full_of, FleetLimit::store_bandwidth);

  input.node.nic_bytes_per_s = 10e6;  // a node asks for 100 samples a second
  EXPECT_NEAR(*plan_fleet(input, {}).full_at, 20, 1e-9);
}

TEST(Fleet, OffersWhatWidensTheLimit) {
  FleetInput input = nodes_of(kEach);
  input.epochs = 90;
  input.node.cache_bytes = 0.1 * kTotal;

  const Fleet fleet = plan_fleet(input, std::array{1.0, 64.0});

  const auto find = [&](std::string_view what) { return std::ranges::find(fleet.changes, what, &FleetChange::what); };
  for (const FleetChange& change : fleet.changes) EXPECT_EQ(change.nodes, 64) << change.what;
  ASSERT_NE(find("prefixes=12"), fleet.changes.end());  // 64,000 requests a second
  EXPECT_EQ(find("prefixes=12")->limit, FleetLimit::node);
  EXPECT_NEAR(find("prefixes=12")->gain, 64 / 5.5, 1e-6);
  ASSERT_NE(find("tar shards"), fleet.changes.end());
  EXPECT_NEAR(find("tar shards")->last_epoch_s, std::max(kTotal / kBlockBytes / 5500, 15.625), 1e-6);
  ASSERT_NE(find("stage"), fleet.changes.end());
  EXPECT_NEAR(find("stage")->last_epoch_s, 15.625, 1e-9);
  ASSERT_NE(find("disk cache"), fleet.changes.end());
  EXPECT_NEAR(find("disk cache")->gain, 1 / 0.9, 1e-6);
  ASSERT_NE(find("larger cache"), fleet.changes.end());
  EXPECT_NEAR(find("larger cache")->gain, 1 / std::pow(63.0 / 64, 89), 1e-6);
  ASSERT_NE(find("shuffle=nodes"), fleet.changes.end());
  EXPECT_NEAR(find("shuffle=nodes")->last_epoch_s, 15.625, 1e-9);
  EXPECT_TRUE(std::ranges::is_sorted(fleet.changes, std::ranges::greater(), &FleetChange::gain));
}

TEST(Fleet, OffersNoFewerRequestsWhereBytesAreTheLimit) {
  FleetInput input = nodes_of(kEach);
  input.store.bytes_per_s = 0.1e9;

  for (const FleetChange& change : plan_fleet(input, std::array{8.0}).changes) {
    EXPECT_NE(change.what, "tar shards");
    EXPECT_FALSE(change.what.starts_with("prefixes")) << change.what;
  }
}

TEST(Fleet, OffersNothingWhereNodesAreTheLimit) {
  EXPECT_TRUE(plan_fleet(nodes_of(kEach), std::array{1.0, 5.0}).changes.empty());
}

TEST(Fleet, AddsUpRunsOfAnyLength) {
  FleetInput input = nodes_of(kEach);
  input.node.cache_bytes = 0;
  for (const double epochs : {1.0, 9'999.0, 10'001.0, 25'000.5, 1e12}) {
    input.epochs = epochs;
    EXPECT_NEAR(row_for(input, 2, StoreAccess::disk_cache).run_use.requests, epochs * kImages, 1e-6 * epochs * kImages);
  }
}

}  // namespace
}  // namespace stoker::plan
