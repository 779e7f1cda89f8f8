#include "stoker/dataset/numbers.h"

#include <array>

#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::dataset {
namespace {

TEST(Numbers, AreSamplesOfOneZeroByteEach) {
  const DatasetPtr data = numbers(5, "Mine");
  ASSERT_EQ(data->size(), 5u);
  EXPECT_EQ(data->name(3), "Mine[3]");
  EXPECT_EQ(data->id(3), 3u);
  const storage::Location place = data->location(3);
  std::array<std::byte, 1> byte{std::byte{9}};
  const storage::Read read{3, byte};
  data->sources()[0]->read({&read, 1});
  EXPECT_EQ(byte[0], std::byte{0});
  EXPECT_EQ(place.bytes, 1u);
}

TEST(Numbers, TellDataSetsOfDifferentLengthApart) {
  EXPECT_NE(numbers(5, "Mine")->facts().fingerprint, numbers(6, "Mine")->facts().fingerprint);
  EXPECT_EQ(numbers(5, "Mine")->facts().fingerprint, numbers(5, "Mine")->facts().fingerprint);
  EXPECT_THROW(numbers(0, "Mine"), Error);
}

TEST(Numbers, AreNarrowedAsOthersAre) {
  OpenOptions options;
  options.subset = 3;
  options.inflate = 2;
  EXPECT_EQ(numbers(10, "Mine", options)->size(), 6u);
}

}  // namespace
}  // namespace stoker::dataset
