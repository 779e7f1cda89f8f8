#include "stoker/os/disk.h"

#include <cerrno>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/os/fault.h"
#include "stoker/os/fd.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::os {
namespace {

TEST(Disk, SaysHowMuchRoomThereIs) {
  const TempFolder folder;
  EXPECT_GT(free_bytes(folder.path()).value_or(1), 0u);
  EXPECT_FALSE(free_bytes(folder.path() + "/nowhere"));
}

TEST(Disk, NamesTheFolderThatCannotBeSynced) {
  const TempFolder folder;
  const Fd fd = open_file(folder.path(), O_RDONLY | O_DIRECTORY);
  EXPECT_NO_THROW(sync_file_system(fd.get(), "the copy"));
  const InjectFault fault(Call::fsync, {.error_number = ENOSPC});
  try {
    sync_file_system(fd.get(), "the copy");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "cannot write to the disk `the copy`: No space left on device");
  }
}

}  // namespace
}  // namespace stoker::os
