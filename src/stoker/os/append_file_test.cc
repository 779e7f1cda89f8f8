#include "stoker/os/append_file.h"

#include <cerrno>
#include <functional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/os/fault.h"
#include "stoker/os/read_file.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::os {
namespace {

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(AppendFile, GrowsBehindWhatItKeeps) {
  const TempFolder folder;
  const std::string path = folder.path() + "/journal";
  AppendFile(path).append("head tail");
  AppendFile(path, 5).append("body");
  EXPECT_EQ(read_text(path), "head body");
  AppendFile(path).append(", more");
  EXPECT_EQ(read_text(path), "head body, more");
  AppendFile(path, 0).append("new");
  EXPECT_EQ(read_text(path), "new");
}

TEST(AppendFile, AppendsWhereTheFileEndsNow) {
  const TempFolder folder;
  const std::string path = folder.path() + "/table.csv";
  AppendFile first(path), second(path);
  first.append("1\n");
  second.append("2\n");
  AppendFile moved = std::move(first);
  moved.append("3\n");
  moved.sync();
  EXPECT_EQ(read_text(path), "1\n2\n3\n");
}

TEST(AppendFile, RepeatsShortAndInterruptedCalls) {
  const TempFolder folder;
  const std::string path = folder.path() + "/journal";
  AppendFile file(path);
  {
    const InjectFault fault(Call::write, {.short_bytes = 2, .times = 3});
    file.append("0123456789");
  }
  const InjectFault fault(Call::fsync, {.error_number = EINTR, .times = 2});
  file.sync();
  EXPECT_EQ(fault.hits(), 2u);
  EXPECT_EQ(read_text(path), "0123456789");
}

TEST(AppendFile, NamesTheFileThatFails) {
  const TempFolder folder;
  const std::string path = folder.path() + "/journal";
  EXPECT_EQ(message_of([&] { AppendFile(folder.path() + "/none/journal"); }).substr(0, 14), "cannot write `");
  AppendFile file(path);
  {
    const InjectFault fault(Call::write, {.error_number = ENOSPC});
    EXPECT_EQ(message_of([&] { file.append("text"); }).find("cannot write `" + path + "`"), 0u);
  }
  const InjectFault fault(Call::fsync, {.error_number = EIO});
  EXPECT_EQ(message_of([&] { file.sync(); }).find("cannot write to the disk `" + path + "`"), 0u);
}

}  // namespace
}  // namespace stoker::os
