#include "stoker/loader/job.h"

#include <gtest/gtest.h>

#include "stoker/loader/engine_parts_test.h"
#include "stoker/loader/made_data_test.h"

namespace stoker::loader {
namespace {

TEST(Job, SettlesEveryAuto) {
  LoaderOptions options = rows_of_100(2);
  options.num_workers = options.io_threads = kAuto;
  options.memory_limit = 0;
  const Job job(held_sounds(8), options);
  EXPECT_TRUE(job.auto_workers);
  EXPECT_GE(job.options.num_workers, 1);
  EXPECT_GE(job.options.io_threads, 1);
  EXPECT_GE(job.options.io_depth, 1u);
  EXPECT_GE(job.options.io_batch, 1u);
  EXPECT_GT(job.options.memory_limit, 0u);
}

TEST(Job, NamesTheLeastMemoryLimitThatWorks) {
  for (const std::uint64_t limit : {std::uint64_t{1}, std::uint64_t{1000},
                                    std::uint64_t{1} << 20}) {  // the first two do not even hold the first sample
    LoaderOptions options = rows_of_100(2);
    options.memory_limit = limit;
    std::string message;
    try {
      const Job job(held_sounds(8), options);
    } catch (const Error& error) {
      EXPECT_EQ(error.option(), "memory_limit");
      message = error.message();
    }
    const std::size_t at = message.rfind('(');
    ASSERT_NE(at, std::string::npos) << message;
    options.memory_limit = std::stoull(message.substr(at + 1));
    EXPECT_TRUE(Job(held_sounds(8), options).memory.is_enough);
  }
}

TEST(Job, ChoosesBlocksThatMix) {
  LoaderOptions options = rows_of_100(2);
  options.shuffle = dataset::parse_shuffle("blocks");
  const Job job(held_sounds(100), options);
  EXPECT_GE(job.options.shuffle.block, 1u);
  EXPECT_EQ(job.options.shuffle.window % job.options.shuffle.block, 0u);
  EXPECT_NE(job.notes.back().in_python().find("stay together"), std::string::npos);
}

TEST(Job, ReadsSmallImagesOfAnArrayTogetherAndLargeOnesOneByOne) {
  Folder folder;
  folder.write("small.npy", npy(256, 32 * 32 * 3, "32, 32, 3"));
  folder.write("large.npy", npy(64, 96 * 96 * 3, "96, 96, 3"));
  LoaderOptions options = batches_of(128);
  options.num_workers = 2;
  options.transform = transform::parse_ops("random_crop:32:4,flip");
  EXPECT_EQ(Job(open_uncached(folder.path("small.npy")), options).memory.unit_rows, 32u);
  options.batch_size = 8;  // but both workers have a share of each batch
  EXPECT_EQ(Job(open_uncached(folder.path("small.npy")), options).memory.unit_rows, 2u);
  options.batch_size = 64;
  EXPECT_EQ(Job(open_uncached(folder.path("large.npy")), options).memory.unit_rows, 1u);
}

TEST(Job, RefusesOptionsThatMeanNothing) {
  const auto refuses = [](const std::function<void(LoaderOptions&)>& change) {
    LoaderOptions options = rows_of_100(2);
    change(options);
    EXPECT_THROW(Job(held_sounds(8), options), Error);
  };
  refuses([](LoaderOptions& options) { options.batch_size = 0; });
  refuses([](LoaderOptions& options) { options.rank = 1; });
  refuses([](LoaderOptions& options) { options.num_workers = -2; });
  refuses([](LoaderOptions& options) { options.io_threads = 0; });
  refuses([](LoaderOptions& options) { options.max_errors = -1; });
}

}  // namespace
}  // namespace stoker::loader
