#include "stoker/os/write_at.h"

#include <cerrno>
#include <string_view>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "stoker/os/fault.h"
#include "stoker/os/fd.h"
#include "stoker/os/read_file.h"
#include "stoker/os/sync.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::os {
namespace {

std::span<const std::byte> bytes_in(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(WriteAt, WritesThereAndNowhereElse) {
  const TempFolder folder;
  const std::string path = folder.file("a.bin", "0123456789");
  const Fd fd = open_file(path, O_RDWR);
  EXPECT_EQ(write_some_at(fd.get(), bytes_in("xy"), 3), 2);
  EXPECT_EQ(read_text(path), "012xy56789");
  EXPECT_EQ(set_file_size(fd.get(), 4), 0);
  EXPECT_EQ(read_text(path), "012x");
  EXPECT_EQ(set_file_size(fd.get(), 6), 0);
  EXPECT_EQ(read_text(path), std::string("012x\0\0", 6));
}

TEST(WriteAt, TellsFailuresAsNumbers) {
  const TempFolder folder;
  const std::string path = folder.file("a.bin", "text");
  const Fd reader = open_file(path, O_RDONLY);
  EXPECT_EQ(write_some_at(reader.get(), bytes_in("x"), 0), -EBADF);
  EXPECT_EQ(set_file_size(reader.get(), 0), EINVAL);
  EXPECT_EQ(sync_file(-1), EBADF);
  EXPECT_EQ(sync_data(-1), EBADF);
  const Fd writer = open_file(path, O_RDWR);
  {
    const InjectFault fault(Call::write, {.error_number = EINTR, .times = 3});
    EXPECT_EQ(write_some_at(writer.get(), bytes_in("new"), 0), 3);
    EXPECT_EQ(fault.hits(), 3u);
  }
  {
    const InjectFault fault(Call::write, {.short_bytes = 2});
    EXPECT_EQ(write_some_at(writer.get(), bytes_in("old"), 0), 2);
  }
  const InjectFault fault(Call::write, {.error_number = ENOSPC});
  EXPECT_EQ(write_some_at(writer.get(), bytes_in("new"), 0), -ENOSPC);
}

TEST(Sync, OfAFolderSucceedsWhereTheFileSystemCannotDoIt) {
  const TempFolder folder;
  const Fd fd = open_file(folder.path(), O_RDONLY | O_DIRECTORY);
  EXPECT_EQ(sync_folder(fd.get()), 0);
  {
    const InjectFault fault(Call::fsync, {.error_number = EINVAL});
    EXPECT_EQ(sync_folder(fd.get()), 0);
  }
  const InjectFault fault(Call::fsync, {.error_number = EIO});
  EXPECT_EQ(sync_folder(fd.get()), EIO);
}

}  // namespace
}  // namespace stoker::os
