#include "stoker/loader/slabs.h"

#include <gtest/gtest.h>

#include "stoker/base/units.h"

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

}  // namespace
}  // namespace stoker::loader
