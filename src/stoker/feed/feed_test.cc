#include "stoker/feed/feed.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/dataset/dataset.h"
#include "stoker/feed/bench_steps.h"
#include "stoker/feed/deep.h"
#include "stoker/feed/workload.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::feed {
namespace {

// An .npy of 64 rows of four float32.
std::string rows_of(const os::TempFolder& folder) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (64, 4), }";
  header.resize(118 - 1, ' ');
  header += '\n';
  std::string text = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(118) + '\0' + header;
  text += std::string(64 * 4 * 4, '\0');
  return folder.file("rows.npy", text);
}

struct Fixture {
  os::TempFolder folder;
  dataset::DatasetPtr data = dataset::open(rows_of(folder));
  loader::LoaderOptions options = [] {
    loader::LoaderOptions all;
    all.batch_size = 8;
    all.num_workers = 1;
    return all;
  }();
};

TEST(Feed, CountsEverySampleOfEveryEpochAndLeavesTheFirstStepOutOfTheSpans) {
  Fixture made;
  loader::Loader loader(made.data, made.options);
  loader.start_epoch(0);
  FeedOptions options;
  options.end_epoch = 2;
  Fed fed;
  feed(loader, options, fed);

  EXPECT_EQ(fed.steps, 16u);
  EXPECT_EQ(fed.samples, 128u);
  ASSERT_EQ(fed.epochs.size(), 2u);
  EXPECT_TRUE(fed.first_step_excluded);
  EXPECT_EQ(fed.epochs[0].samples, 56u);
  EXPECT_EQ(fed.epochs[1].samples, 64u);
  EXPECT_EQ(fed.total.decoded_bytes, 120u * 16);
}

TEST(Feed, StopsWhereItIsInterruptedAndKeepsWhatItMeasured) {
  Fixture made;
  loader::Loader loader(made.data, made.options);
  loader.start_epoch(0);
  FeedOptions options;
  Fed fed;
  options.interrupted = [&] { return fed.steps >= 3; };
  feed(loader, options, fed);

  EXPECT_TRUE(fed.interrupted);
  EXPECT_EQ(fed.steps, 3u);
}

TEST(Feed, OfOneStepKeepsThatStep) {
  Fixture made;
  loader::Loader loader(made.data, made.options);
  loader.start_epoch(0);
  FeedOptions options;
  options.steps = 1;
  Fed fed;
  feed(loader, options, fed);

  EXPECT_FALSE(fed.first_step_excluded);
  EXPECT_EQ(fed.total.samples, 8u);
}

TEST(BenchSteps, MeasuresAtLeastSoManyStepsAcrossEpochs) {
  Fixture made;
  loader::Loader loader(made.data, made.options);
  loader.start_epoch(0);
  const Benched benched =
      bench_steps(loader, {.warmup_steps = 2, .bench_steps = 20, .least = std::chrono::nanoseconds(0)});

  EXPECT_GE(benched.steps, 20u);
  EXPECT_GT(benched.samples_per_s, 0);
  EXPECT_EQ(benched.ledger.num_workers, 1);
}

TEST(BenchSteps, ReadsNothingAheadOfTheLastStepOnceTheTimeIsOver) {
  Fixture made;
  loader::Loader loader(made.data, made.options);
  loader.expect_steps(2 + 5);
  loader.start_epoch(0);
  const Benched benched =
      bench_steps(loader, {.warmup_steps = 2, .bench_steps = 5, .least = std::chrono::nanoseconds(0)});
  EXPECT_EQ(benched.steps, 5u);
  loader.close();
  EXPECT_EQ(loader.stats().fetch.items, 7u * 8);
}

TEST(DeepRuns, NameEachPartAndUseTheSameNumberOfSteps) {
  Fixture made;
  std::vector<std::string> parts;
  const measure::DeepRuns runs = deep_runs(
      made.data, made.options,
      {.step = std::chrono::microseconds(100), .steps = 4, .begun = [&](const std::string& what, std::uint64_t) {
         parts.push_back(what);
       }});

  EXPECT_EQ(runs.steps, 4u);
  EXPECT_EQ(parts, (std::vector<std::string>{"reading once", "loader only, warm", "dropping from the page cache",
                                             "loader only, cold", "real"}));
  EXPECT_TRUE(runs.cold_s);
}

TEST(Workloads, OfferTheNearestName) {
  EXPECT_EQ(find_workload("resnet50-h100").batch_size, 400u);
  try {
    find_workload("resnet50-h10");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.hint(), "did you mean `resnet50-h100`?");
  }
}

}  // namespace
}  // namespace stoker::feed
