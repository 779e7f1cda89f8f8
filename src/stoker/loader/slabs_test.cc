#include "stoker/loader/slabs.h"

#include <gtest/gtest.h>

#include "stoker/base/units.h"
#include "stoker/os/shared_region.h"

namespace stoker::loader {
namespace {

TEST(Slabs, ARoomyOneServesLongerBatchesToo) {
  SlabPool pool(64 * kMiB, nullptr, {});
  Slab* const first = pool.acquire(2 * kMiB, 8 * kMiB);
  pool.release(first);
  EXPECT_EQ(pool.acquire(6 * kMiB, 8 * kMiB), first);
  EXPECT_EQ(pool.count(), 1u);
}

TEST(Slabs, AreAsLargeAsTheirBatchWhereMemoryIsScarce) {
  SlabPool pool(16 * kMiB, nullptr, {});
  Slab* const first = pool.acquire(2 * kMiB, 8 * kMiB);
  EXPECT_EQ(first->arena.size(), 2 * kMiB) << "half of the budget is too much for one";
  for (int i = 1; i < 8; ++i) EXPECT_NE(pool.acquire(2 * kMiB, 8 * kMiB), nullptr) << i;
  EXPECT_EQ(pool.acquire(2 * kMiB, 8 * kMiB), nullptr);
}

TEST(Slabs, ThatCameBackAreUsedAgain) {
  SlabPool pool(8 * kMiB, nullptr, {});
  Slab* const first = pool.acquire(kMiB);
  ASSERT_NE(first, nullptr);
  pool.release(first);
  EXPECT_EQ(pool.free_count(), 1u);
  EXPECT_EQ(pool.acquire(kMiB), first);
  EXPECT_EQ(pool.count(), 1u);
}

TEST(Slabs, LieInSharedRegionWhereThatIsGiven) {
  const auto shared = std::make_shared<os::SharedRegion>();
  SlabPool pool(8 * kMiB, nullptr, {}, shared);
  Slab* const first = pool.acquire(kMiB);
  Slab* const second = pool.acquire(kMiB);
  EXPECT_TRUE(first->arena.is_shared());
  EXPECT_GE(second->arena.shared_offset(), first->arena.shared_offset() + first->arena.size());
  EXPECT_FALSE(SlabPool(8 * kMiB, nullptr, {}).acquire(kMiB)->arena.is_shared());
}

TEST(Slabs, StayWithinTheirLimitAndSayWhenThereIsNoneToBeHad) {
  SlabPool pool(2 * kMiB, nullptr, {});
  Slab* const first = pool.acquire(kMiB);
  EXPECT_FALSE(pool.is_exhausted(kMiB));
  ASSERT_NE(pool.acquire(kMiB), nullptr);
  EXPECT_EQ(pool.acquire(kMiB), nullptr);
  EXPECT_TRUE(pool.is_exhausted(kMiB));
  EXPECT_LE(pool.peak_bytes(), pool.limit_bytes());
  pool.release(first);
  EXPECT_FALSE(pool.is_exhausted(kMiB));
  EXPECT_EQ(pool.acquire(kMiB), first);
}

TEST(Slabs, ThatAreTooSmallMakeRoomForALargerOne) {
  SlabPool pool(4 * kMiB, nullptr, {});
  Slab* const small = pool.acquire(kMiB);
  Slab* const other = pool.acquire(kMiB);
  pool.release(small);
  pool.release(other);
  EXPECT_NE(pool.acquire(4 * kMiB), nullptr);
  EXPECT_EQ(pool.count(), 1u);
  EXPECT_LE(pool.used_bytes(), pool.limit_bytes());
}

TEST(Slabs, TellOfEachReleaseUntilNobodyListens) {
  int releases = 0;
  SlabPool pool(8 * kMiB, nullptr, [&] { ++releases; });
  Slab* const first = pool.acquire(kMiB);
  Slab* const second = pool.acquire(kMiB);
  pool.release(first);
  EXPECT_EQ(releases, 1);
  pool.forget_on_release();
  pool.release(second);
  EXPECT_EQ(releases, 1);
}

}  // namespace
}  // namespace stoker::loader
