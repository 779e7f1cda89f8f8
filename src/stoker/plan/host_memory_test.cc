#include "stoker/plan/host_memory.h"

#include <gtest/gtest.h>

namespace stoker::plan {
namespace {

TEST(HostBudget, OfCaseCIs84Of170GBWith12Workers) {
  const HostBudget budget = host_budget({.workers = 12, .worker_bytes = 7e9}, {.memory_bytes = 170e9});
  EXPECT_NEAR(budget.total_bytes, 84e9, 1);
  EXPECT_TRUE(budget.fits());
  EXPECT_NEAR(*budget.page_cache_bytes, 86e9, 1);
}

TEST(HostBudget, SumsItsLines) {
  const HostBudget budget = host_budget({.main_bytes = 3e9,
                                         .workers = 16,
                                         .worker_bytes = 1e9,
                                         .batch_bytes = 154'140'672,
                                         .prefetch_factor = 4,
                                         .pin_memory = true,
                                         .cache_bytes = 5e9},
                                        {.memory_bytes = 62e9, .shm_bytes = 8e9});
  double sum = 0;
  for (const HostLine& line : budget.lines) sum += line.bytes;
  EXPECT_DOUBLE_EQ(sum, budget.total_bytes);
  EXPECT_NEAR(budget.shm_bytes, 9.87e9, 0.01e9);  // 16 workers x 4 batches of case E
  EXPECT_FALSE(budget.shm_fits());
  EXPECT_TRUE(budget.fits());
}

TEST(HostBudget, CountsUnifiedMemoryOnceAgainstOneLimit) {
  const HostUse use{.main_bytes = 20e9, .device_bytes = 60e9};
  const HostBudget apart = host_budget(use, {.memory_bytes = 128e9});
  const HostBudget one = host_budget(use, {.memory_bytes = 128e9, .unified = true, .dataset_bytes = 50e9});
  EXPECT_NEAR(apart.total_bytes, 20e9, 1);
  EXPECT_NEAR(one.total_bytes, 80e9, 1);
  EXPECT_NEAR(*one.page_cache_bytes, 48e9, 1);
  EXPECT_FALSE(*one.dataset_fits_cache);
}

TEST(HostBudget, LetsWorkersGrowUntilTheEndButNotBeyondWhatTheyShare) {
  HostUse use{.workers = 10, .worker_bytes = 1e9, .worker_growth_per_s = 1000, .seconds = 1e6};
  EXPECT_NEAR(host_budget(use, {}).total_bytes, 20e9, 1);
  use.worker_most_bytes = 1.5e9;
  EXPECT_NEAR(host_budget(use, {}).total_bytes, 15e9, 1);
}

TEST(HostBudget, SaysWhenGrowingWorkersFillTheMemory) {
  const HostBudget budget = host_budget(
      {.workers = 10, .worker_bytes = 1e9, .worker_growth_per_s = 1000, .seconds = 1e7}, {.memory_bytes = 20e9});
  EXPECT_FALSE(budget.fits());
  EXPECT_NEAR(*budget.full_after_s, 1e6, 1);
}

TEST(HostBudget, OfALoaderOfThreadsHasNoShm) {
  const HostBudget budget =
      host_budget({.main_bytes = 1e9, .batch_bytes = 1e8, .prefetch_factor = 2}, {.shm_bytes = 1});
  EXPECT_EQ(budget.shm_bytes, 0);
  EXPECT_NEAR(budget.total_bytes, 1.2e9, 1);
}

}  // namespace
}  // namespace stoker::plan
