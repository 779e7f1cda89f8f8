#include "stoker/os/shared_mapping.h"

#include <cerrno>
#include <filesystem>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/os/fault.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::os {
namespace {

TEST(SharedMapping, ShowsToAllWhatOneWrites) {
  const TempFolder folder;
  const std::string path = folder.path() + "/table";
  const SharedMapping one = SharedMapping::make(path, 10'000);
  const SharedMapping other = SharedMapping::open(path);
  ASSERT_EQ(other.bytes().size(), 10'000u);
  EXPECT_EQ(other.bytes()[9'999], std::byte{0});
  one.bytes()[9'999] = std::byte{42};
  EXPECT_EQ(other.bytes()[9'999], std::byte{42});
  EXPECT_TRUE(other.is_in_place(path));
  std::filesystem::remove(path);
  EXPECT_FALSE(other.is_in_place(path));
}

TEST(SharedMapping, MakesNoFileOverAnotherAndNoneOnAFullDisk) {
  const TempFolder folder;
  const std::string path = folder.file("table", "mine");
  EXPECT_THROW(SharedMapping::make(path, 100), Error);
  EXPECT_EQ(std::filesystem::file_size(path), 4u);
  const InjectFault fault(Call::write, {.error_number = ENOSPC});
  EXPECT_THROW(SharedMapping::make(folder.path() + "/other", 100), Error);
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/other"));
}

TEST(SharedMapping, RefusesWhatIsMissingOrEmpty) {
  const TempFolder folder;
  EXPECT_THROW(SharedMapping::open(folder.path() + "/none"), Error);
  EXPECT_THROW(SharedMapping::open(folder.file("empty", "")), Error);
}

}  // namespace
}  // namespace stoker::os
