#include "stoker/os/folder_reader.h"

#include <array>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "stoker/os/fault.h"
#include "stoker/os/fd.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::os {
namespace {

// The names, read through a buffer of that size.
std::multiset<std::string> names_in(const std::string& path, std::size_t buffer_bytes, int& error_number) {
  const Fd fd = open_file(path, O_RDONLY | O_DIRECTORY);
  std::vector<std::byte> buffer(buffer_bytes);
  std::multiset<std::string> names;
  FolderReader reader(fd.get(), buffer);
  for (FolderEntry entry; reader.next(entry);) names.insert(entry.name);
  error_number = reader.error_number();
  return names;
}

TEST(FolderReader, GivesEachNameOnceHoweverSmallTheBufferIs) {
  const TempFolder folder;
  std::multiset<std::string> expected = {".hidden", "..more"};
  for (int i = 0; i < 300; ++i)
    expected.insert(std::string(static_cast<std::size_t>(i) % 200 + 1, 'x') + std::to_string(i));
  for (const std::string& name : expected) folder.file(name, "");
  for (const std::size_t bytes : {280, 4096, 131072}) {
    int error_number = -1;
    EXPECT_EQ(names_in(folder.path(), bytes, error_number), expected) << bytes;
    EXPECT_EQ(error_number, 0);
  }
}

TEST(FolderReader, TellsTheKindOfEachEntryItself) {
  const TempFolder folder;
  folder.file("file", "1");
  folder.file("folder/below", "1");
  ASSERT_EQ(::mkfifo((folder.path() + "/pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("folder", folder.path() + "/link");
  const Fd fd = open_file(folder.path(), O_RDONLY | O_DIRECTORY);
  std::array<std::byte, 4096> buffer;
  std::map<std::string, FileKind> kinds;
  FolderReader reader(fd.get(), buffer);
  for (FolderEntry entry; reader.next(entry);) kinds[entry.name] = entry.kind;
  if (kinds["file"] == FileKind::unknown) GTEST_SKIP() << "this file system does not tell the kinds";
  EXPECT_EQ(kinds, (std::map<std::string, FileKind>{{"file", FileKind::regular},
                                                    {"folder", FileKind::folder},
                                                    {"pipe", FileKind::pipe},
                                                    {"link", FileKind::link}}));
}

TEST(FolderReader, StopsAtAFailureAndNamesIt) {
  const TempFolder folder;
  folder.file("a", "");
  int error_number = 0;
  {
    const InjectFault fault(Call::read, {.error_number = EINTR, .times = 3});
    EXPECT_EQ(names_in(folder.path(), 4096, error_number).size(), 1u);
    EXPECT_EQ(error_number, 0);
  }
  {
    const InjectFault fault(Call::read, {.error_number = EIO, .skip = 1});
    EXPECT_EQ(names_in(folder.path(), 4096, error_number).size(), 1u);
    EXPECT_EQ(error_number, EIO);
  }
  std::array<std::byte, 4096> buffer;
  FolderReader none(-1, buffer);
  FolderEntry entry;
  EXPECT_FALSE(none.next(entry));
  EXPECT_EQ(none.error_number(), EBADF);
}

}  // namespace
}  // namespace stoker::os
