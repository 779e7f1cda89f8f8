#include "stoker/loader/allowance.h"

#include <gtest/gtest.h>

#include "stoker/base/units.h"

namespace stoker::loader {
namespace {

Demand photos(std::uint64_t limit_bytes) {
  Demand demand;
  demand.limit_bytes = limit_bytes;
  demand.batch_size = 32;
  demand.batch_bytes = 6 * kMiB;
  demand.list_bytes = 100 * kKiB;
  demand.usual_bytes = 110 * kKiB;
  demand.largest_bytes = kMiB;
  return demand;
}

Demand sounds(std::uint64_t limit_bytes) {
  Demand demand = photos(limit_bytes);
  demand.batch_size = 256;
  demand.batch_bytes = 4 * kMiB;
  demand.usual_bytes = 8 * kKiB;
  demand.largest_bytes = 30 * kKiB;
  demand.varies = true;
  demand.decodes = false;
  return demand;
}

std::uint64_t sum(const Allowance& a) {
  return a.fixed_bytes + a.ring_bytes + a.working_bytes + 2 * a.batch_bytes + a.spare_bytes;
}

TEST(Allowance, SharesOutTheLimitAndNotAByteMore) {
  for (std::uint64_t limit = kMiB; limit < 40 * kGiB; limit += limit / 7) {
    for (Demand demand : {photos(limit), sounds(limit)}) {
      for (const bool decodes : {false, true}) {
        for (const std::uint64_t largest : {10 * kKiB, 3 * kMiB, 900 * kMiB}) {
          demand.decodes = decodes;
          demand.largest_bytes = largest;
          const Allowance allowance = allow(demand);
          if (!allowance.is_enough) continue;
          EXPECT_LE(sum(allowance), limit);
          EXPECT_GE(sum(allowance), limit - 4 * kMiB) << "what arenas round away";
        }
      }
    }
  }
}

TEST(Allowance, GrowsWithTheLimit) {
  for (Demand demand : {photos(0), sounds(0)}) {
    for (const std::uint64_t largest : {10 * kKiB, 3 * kMiB, 900 * kMiB}) {
      demand.largest_bytes = largest;
      Allowance before;
      for (std::uint64_t limit = 16 * kMiB; limit < 40 * kGiB; limit += limit / 50) {
        demand.limit_bytes = limit;
        const Allowance now = allow(demand);
        if (!now.is_enough) continue;
        EXPECT_GE(now.encoded_bytes, before.encoded_bytes) << limit;
        EXPECT_GE(now.working_bytes + 2 * kMiB, before.working_bytes) << limit;
        EXPECT_GE(now.batch_bytes + 2 * kMiB, before.batch_bytes) << limit;
        before = now;
      }
    }
  }
}

TEST(Allowance, NamesALimitThatIsEnough) {
  for (Demand demand : {photos(16 * kMiB), sounds(16 * kMiB), photos(kMiB)}) {
    demand.largest_bytes = 300 * kMiB;
    const std::uint64_t wanted = 777 * kMiB;
    const std::uint64_t limit = enough_limit(demand, [&](const Allowance& a) { return a.working_bytes >= wanted; });
    demand.limit_bytes = limit;
    EXPECT_TRUE(demand.decodes == false || allow(demand).working_bytes >= wanted);
    demand.limit_bytes = limit - limit / 50;
    EXPECT_FALSE(allow(demand).working_bytes >= wanted && allow(demand).is_enough) << "and not far above the least";
  }
}

TEST(Allowance, RefusesALimitWithoutRoomForTwoBatches) {
  EXPECT_FALSE(allow(photos(12 * kMiB)).is_enough);
  EXPECT_TRUE(allow(photos(32 * kMiB)).is_enough);
  Demand demand = photos(32 * kMiB);
  demand.list_bytes = 30 * kMiB;
  EXPECT_FALSE(allow(demand).is_enough) << "the list of samples counts";
}

TEST(PlanCounts, StayWithinTheirMemory) {
  for (const bool varies : {false, true}) {
    for (const std::uint64_t batch : {1u, 32u, 4096u}) {
      Demand demand = photos(64 * kMiB);
      demand.batch_size = batch;
      demand.varies = varies;
      const PlanCounts counts = plans_within(allow(demand).plan_bytes, demand);
      EXPECT_GE(counts.pendings, 3u);
      EXPECT_GE(counts.units, varies ? batch : 16);
    }
  }
}

}  // namespace
}  // namespace stoker::loader
