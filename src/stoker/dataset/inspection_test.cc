#include "stoker/dataset/inspection.h"

#include <string>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::dataset {
namespace {

// An .npy of one row of `count` bytes.
std::string array_of(int count) {
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(count) + ",), }";
  header.resize(117, ' ');
  return std::string("\x93NUMPY\x01\x00", 8) + std::string("\x76\x00", 2) + header + '\n' +
         std::string(static_cast<std::size_t>(count), 'x');
}

TEST(Inspection, CountsClassesSizesAndWhatTheCodecsSay) {
  const os::TempFolder folder;
  folder.file("cat/a.npy", array_of(10));
  folder.file("cat/b.npy", array_of(10));
  folder.file("dog/c.npy", array_of(5000));

  const Inspection found = inspect(*open(folder.path()), {});

  EXPECT_EQ(found.count, 3u);
  ASSERT_EQ(found.classes.size(), 2u);
  EXPECT_EQ(found.classes[0].count, 2u);
  EXPECT_EQ(found.sizes.least, 138u);
  EXPECT_EQ(found.sizes.most, 5128u);
  EXPECT_EQ(found.examined.arrays, 3u);
  EXPECT_EQ(found.examined.array_shapes.at("uint8 [10]"), 2u);
  EXPECT_TRUE(found.examined_all);
  std::uint64_t in_buckets = 0;
  for (const SizeBucket& bucket : found.histogram) in_buckets += bucket.count;
  EXPECT_EQ(in_buckets, 3u);
}

TEST(Inspection, NamesBadFilesInTheirOrder) {
  const os::TempFolder folder;
  folder.file("a.npy", "no array");
  folder.file("b.npy", array_of(4));
  folder.file("c.npy", "");

  const Inspection found = inspect(*open(folder.path()), {.everything = true});

  ASSERT_EQ(found.examined.bad.size(), 2u);
  EXPECT_EQ(found.examined.bad[0].name, "a.npy");
  EXPECT_EQ(found.examined.bad[1].name, "c.npy");
  EXPECT_FALSE(found.examined.bad[0].cause.empty());
}

TEST(Inspection, EndsWhereItIsInterrupted) {
  const os::TempFolder folder;
  folder.file("a.npy", array_of(4));
  EXPECT_THROW(inspect(*open(folder.path()), {.interrupted = [] { return true; }}), Error);
}

}  // namespace
}  // namespace stoker::dataset
