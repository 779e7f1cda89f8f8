#include "stoker/loader/use_forecast.h"

#include <map>

#include <gtest/gtest.h>

#include "stoker/loader/held_data_test.h"

namespace stoker::loader {
namespace {

LoaderOptions rows(std::uint64_t batch_size, dataset::Shuffle shuffle) {
  LoaderOptions options;
  options.batch_size = batch_size;
  options.num_workers = 1;
  options.memory_limit = 64 << 20;
  options.shuffle = shuffle;
  options.transform = transform::parse_ops("pad:100");
  return options;
}

TEST(UseForecast, NamesThePositionOfTheSameSampleInTheNextEpoch) {
  for (const dataset::Shuffle& shuffle :
       {dataset::Shuffle(false), dataset::Shuffle(true), dataset::Shuffle(dataset::Shuffle::How::blocks, 3, 9)}) {
    const Job job(held_sounds(50), rows(4, shuffle));
    UseForecast forecast(job);
    const dataset::Order second = job.make_order(2, 0), third = job.make_order(3, 0);
    for (std::uint64_t position = 0; position < 50; ++position) {
      const storage::NextUse use = forecast.of(2, position, second.sample(position));
      ASSERT_TRUE(use.is_known());
      EXPECT_EQ(use.now, 100 + position);
      EXPECT_EQ(third.sample(use.next - 150), second.sample(position));
    }
  }
}

TEST(UseForecast, IsTheSameOnEveryRankAndAnotherOneForAnotherSeed) {
  LoaderOptions options = rows(4, true);
  const std::uint64_t alone = UseForecast(Job(held_sounds(50), options)).of(0, 0, 0).order;
  options.rank = 1, options.world_size = 2;
  EXPECT_EQ(UseForecast(Job(held_sounds(50), options)).of(0, 0, 0).order, alone);
  options.seed = 9;
  EXPECT_NE(UseForecast(Job(held_sounds(50), options)).of(0, 0, 0).order, alone);
}

TEST(UseForecast, OfPaddingIsNotAfterTheNextEpochBegins) {
  const Job job(held_sounds(50), rows(4, true));
  const storage::NextUse use = UseForecast(job).of(0, 51, job.make_order(0, 0).sample(51));
  EXPECT_LT(use.now, 50u);
  EXPECT_GE(use.next, 50u);
}

TEST(UseForecast, KnowsNothingOfSamplesThatAnEpochRepeats) {
  const Job job(dataset::inflate(held_sounds(50), 2), rows(4, true));
  EXPECT_FALSE(UseForecast(job).of(0, 0, 0).is_known());
}

}  // namespace
}  // namespace stoker::loader
