#include "stoker/feed/advice.h"

#include <gtest/gtest.h>

namespace stoker::feed {
namespace {

// A second of running time, of which `wait` was waited.
Fed fed_with(meter::WaitSplit wait) {
  Fed fed;
  fed.total.steps = 10;
  fed.total.running_s = 1;
  fed.total.wait = wait;
  fed.total.compute_s = 1 - static_cast<double>(wait.total_ns()) * 1e-9;
  fed.wall_s = 1;
  fed.cpu_s = 4;
  fed.stats.num_workers = 4;
  return fed;
}

meter::WaitSplit waiting(std::int64_t fetch_ms, std::int64_t prep_ms, std::int64_t handoff_ms) {
  meter::WaitSplit wait;
  wait.fetch_ns = fetch_ms * 1'000'000;
  wait.prep_ns = prep_ms * 1'000'000;
  wait.handoff_ns = handoff_ms * 1'000'000;
  return wait;
}

TEST(Advice, NamesTheStageThatLimitsAndItsGain) {
  EXPECT_EQ(verdict_line(fed_with(waiting(0, 600, 0)).total),
            "prep_bound (io_bound) 60.0 %, severe: 2.50x faster if prep were free");
  EXPECT_EQ(verdict_line(fed_with(waiting(0, 0, 0)).total), "compute_bound 100.0 %: the loader keeps up");
}

TEST(Advice, AsksForWorkersBeforeAnythingElse) {
  const Fed fed = fed_with(waiting(0, 600, 0));
  loader::LoaderOptions options;
  options.num_workers = 2;
  FedRun run{.fed = fed, .options = options, .cores = 4, .decodes_jpeg = true};
  EXPECT_EQ(next_step(run).in_python(),
            "more workers: num_workers=\"auto\" (this machine gives 4 cores, 4 workers ran)");
  options.num_workers = 4;
  EXPECT_EQ(next_step(run).in_python(),
            "the workers are busy decoding on 4 cores: decode=\"fast\", smaller files, or more cores");
  run.decodes_jpeg = false;
  EXPECT_EQ(next_step(run).in_flags([](auto) { return true; }),
            "the workers are busy on 4 cores: a cheaper --transform, or more cores");
}

TEST(Advice, ACrowdedMachineIsSaid) {
  Fed fed = fed_with(waiting(0, 600, 0));
  loader::LoaderOptions options;
  options.num_workers = 4;
  const FedRun run{.fed = fed, .options = options, .cores = 4};
  EXPECT_FALSE(is_crowded(run));
  fed.cpu_s = 1;
  EXPECT_TRUE(is_crowded(run));
  EXPECT_NE(next_step(run).in_python().find("a quiet machine"), std::string::npos);
}

TEST(Advice, OfAStoreIsItsCacheThenMoreRequests) {
  Fed fed = fed_with(waiting(600, 0, 0));
  fed.stats.store.requests = 10;
  loader::LoaderOptions options;
  options.io_threads = 2;
  const FedRun run{.fed = fed, .options = options, .cores = 4, .total_bytes = 4'000'000'000};
  EXPECT_EQ(next_step(run).in_flags([](auto) { return true; }),
            "later epochs from the local disk: --cache-limit 6GB keeps the objects (the data is 3.7 GiB)");
  options.cache_limit = 1;
  fed.stats.store.cache_misses = 2;
  EXPECT_NE(next_step(run).in_python().find("a larger cache_limit"), std::string::npos);
  fed.stats.store.cache_hits = 3;
  EXPECT_EQ(next_step(run).in_python(), "more requests at once: io_threads=4");
}

TEST(Advice, OfFilesDependsOnThePageCache) {
  const Fed fed = fed_with(waiting(600, 0, 0));
  loader::LoaderOptions options;
  options.storage = storage::Storage::buffered;
  FedRun run{.fed = fed, .options = options, .cores = 4};
  EXPECT_NE(next_step(run).in_python().find("storage=\"direct\""), std::string::npos);
  run.is_warm = run.file_per_sample = true;
  EXPECT_NE(next_step(run).in_python().find("`stoker pack`"), std::string::npos);
  run.file_per_sample = false;
  EXPECT_NE(next_step(run).in_python().find("storage=\"mmap\""), std::string::npos);
}

TEST(Advice, OfTheHandOffIsLargerBatchesThenMoreOfThem) {
  const Fed fed = fed_with(waiting(0, 0, 600));
  loader::LoaderOptions options;
  options.batch_size = 4;
  options.prefetch_factor = 3;
  const FedRun run{.fed = fed, .options = options, .cores = 4};
  EXPECT_NE(next_step(run).in_python().find("batch_size=64"), std::string::npos);
  options.batch_size = 64;
  EXPECT_NE(next_step(run).in_python().find("prefetch_factor=6"), std::string::npos);
}

}  // namespace
}  // namespace stoker::feed
