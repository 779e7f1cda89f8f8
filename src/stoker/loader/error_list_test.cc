#include "stoker/loader/error_list.h"

#include <gtest/gtest.h>

#include "stoker/base/units.h"
#include "stoker/loader/held_data_test.h"

namespace stoker::loader {
namespace {

std::deque<SampleError> bad_samples(std::uint64_t count) {
  std::deque<SampleError> errors;
  for (std::uint64_t i = 0; i < count; ++i) {
    errors.emplace_back();
    errors.back().index = i;
    errors.back().stage = "decode";
    errors.back().cause = "it is truncated";
  }
  return errors;
}

TEST(ErrorList, NamesWhatItListsInTheOrderInWhichItCame) {
  const auto data = held_sounds(10);
  ErrorList list(*data, 0, kMiB);
  EXPECT_FALSE(list.add(bad_samples(2), true));
  const std::vector<SampleError> all = list.all();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "held[0]");
  EXPECT_EQ(all[1].message().in_python(), "cannot decode `held[1]` (sample 1): it is truncated");
}

TEST(ErrorList, CountsOnWhenItsMemoryIsFullAndSaysSoOnce) {
  const auto data = held_sounds(10);
  ErrorList list(*data, 0, 3 * (sizeof(SampleError) + 64));
  EXPECT_TRUE(list.add(bad_samples(10), true));
  EXPECT_FALSE(list.add(bad_samples(10), true));
  EXPECT_EQ(list.count(), 20u);
  EXPECT_EQ(list.all().size(), 3u);
  EXPECT_EQ(list.listed(), 3u);
}

TEST(ErrorList, EndsTheRunWithOneMoreThanMaxErrorsInAnEpoch) {
  const auto data = held_sounds(100);
  ErrorList list(*data, 3, kMiB);
  list.add(bad_samples(2), true);
  EXPECT_FALSE(list.too_many(0, bad_samples(1)));
  const std::optional<Error> error = list.too_many(0, bad_samples(2));
  ASSERT_TRUE(error);
  EXPECT_NE(error->message().find("4 bad samples in epoch 0, more than max_errors=3"), std::string::npos);
  list.epoch_entered();
  EXPECT_FALSE(list.too_many(1, bad_samples(2))) << "the limit is that of one epoch";
}

TEST(ErrorList, TakesMaxErrorsBelowOneAsAShareOfTheDataSet) {
  const auto data = held_sounds(100);
  const ErrorList list(*data, 0.05, kMiB);
  EXPECT_FALSE(list.too_many(0, bad_samples(5)));
  EXPECT_TRUE(list.too_many(0, bad_samples(6)));
  const ErrorList tiny(*data, 0.0001, kMiB);
  EXPECT_FALSE(tiny.too_many(0, bad_samples(1))) << "one is always allowed";
  const ErrorList none(*data, 0, kMiB);
  EXPECT_FALSE(none.too_many(0, bad_samples(100))) << "0 is no limit";
}

}  // namespace
}  // namespace stoker::loader
