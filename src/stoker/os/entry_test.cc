#include "stoker/os/entry.h"

#include <cerrno>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/os/fault.h"
#include "stoker/os/read_file.h"
#include "stoker/os/temp_folder_test.h"
#include "stoker/os/write_all.h"

namespace stoker::os {
namespace {

TEST(Entry, SaysWhatLiesUnderAName) {
  const TempFolder folder;
  const std::string path = folder.file("a/b", "four");
  const Entry file = look_up(path);
  EXPECT_EQ(file.kind, Entry::Kind::file);
  EXPECT_EQ(file.bytes, 4u);
  EXPECT_GT(file.modified_ns, 0);
  EXPECT_EQ(look_up(folder.path()).kind, Entry::Kind::folder);
  EXPECT_EQ(look_up("/dev/null").kind, Entry::Kind::other);
  EXPECT_EQ(look_up(folder.path() + "/nowhere").kind, Entry::Kind::missing);
  EXPECT_EQ(look_up(path + "/below").error_number, ENOTDIR);
  const InjectFault fault(Call::stat, {.error_number = EIO});
  EXPECT_EQ(look_up(path).kind, Entry::Kind::unknown);
}

TEST(LockFolder, RefusesASecondHolderUntilTheFirstIsGone) {
  const TempFolder folder;
  Fd first = lock_folder(folder.path());
  EXPECT_TRUE(first);
  EXPECT_FALSE(lock_folder(folder.path()));
  first.reset();
  EXPECT_TRUE(lock_folder(folder.path()));
  EXPECT_THROW(lock_folder(folder.path() + "/nowhere"), Error);
}

TEST(WriteAllAt, WritesInAnyOrderAndThroughShortWrites) {
  const TempFolder folder;
  const std::string path = folder.file("x", "");
  const Fd fd = open_file(path, O_WRONLY);
  const auto write = [&](std::string_view text, std::uint64_t offset) {
    return write_all_at(fd.get(), std::as_bytes(std::span(text.data(), text.size())), offset);
  };
  EXPECT_EQ(write("world", 6), 0);
  const InjectFault fault(Call::write, {.short_bytes = 2, .times = 2});
  EXPECT_EQ(write("hello ", 0), 0);
  EXPECT_EQ(read_text(path), "hello world");
}

}  // namespace
}  // namespace stoker::os
