#include "stoker/os/file_facts.h"

#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "stoker/os/fault.h"
#include "stoker/os/fd.h"
#include "stoker/os/read_file.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::os {
namespace {

TEST(FileFacts, AreTheSameByPathByFolderAndByDescriptor) {
  const TempFolder folder;
  const std::string path = folder.file("a.bin", "12345");
  const Fd file = open_file(path, O_RDONLY), directory = open_file(folder.path(), O_RDONLY | O_DIRECTORY);
  for (const FileFacts& facts : {facts_of(path), facts_of(directory.get(), "a.bin"), facts_of(file.get())}) {
    EXPECT_TRUE(facts.is_found());
    EXPECT_EQ(facts.kind, FileKind::regular);
    EXPECT_EQ(facts.bytes, 5u);
    EXPECT_EQ(facts.inode, facts_of(path).inode);
    EXPECT_EQ(facts.device, facts_of(path).device);
    EXPECT_EQ(facts.changed_ns, facts_of(path).changed_ns);
  }
  EXPECT_NE(facts_of(folder.path()).inode, facts_of(path).inode);
}

TEST(FileFacts, TellWhenTheBytesWereWritten) {
  const TempFolder folder;
  const std::string path = folder.file("a.bin", "1");
  const timespec times[2] = {{.tv_sec = 1, .tv_nsec = 2}, {.tv_sec = 1'700'000'000, .tv_nsec = 123'456'789}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  EXPECT_EQ(facts_of(path).modified_ns, 1'700'000'000'123'456'789);
  EXPECT_GT(facts_of(path).changed_ns, facts_of(path).modified_ns);  // the change of the time itself
}

TEST(FileFacts, NameTheKindThatALinkLeadsTo) {
  const TempFolder folder;
  const std::string pipe = folder.path() + "/pipe", link = folder.path() + "/link", lost = folder.path() + "/lost";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink(folder.path(), link);
  std::filesystem::create_symlink(folder.path() + "/nowhere", lost);
  EXPECT_EQ(facts_of(pipe).kind, FileKind::pipe);
  EXPECT_EQ(facts_of(link).kind, FileKind::folder);
  EXPECT_EQ(facts_of("/dev/null").kind, FileKind::device);
  EXPECT_EQ(facts_of(lost).error_number, ENOENT);
  EXPECT_TRUE(can_reach(link));
  EXPECT_FALSE(can_reach(lost));
  EXPECT_TRUE(exists(lost));
}

TEST(FileFacts, FailAsTheSystemDoes) {
  EXPECT_EQ(facts_of(-1).error_number, EBADF);
  EXPECT_EQ(facts_of("/dev/null/below").error_number, ENOTDIR);
  const InjectFault fault(Call::stat, {.error_number = EIO});
  EXPECT_EQ(facts_of("/").error_number, EIO);
}

TEST(FileFacts, SeeThatAnotherFileHasThePathNow) {
  const TempFolder folder;
  const std::string path = folder.file("a.bin", "1");
  const Fd fd = open_file(path, O_RDONLY);
  EXPECT_TRUE(is_still_at(fd.get(), path));
  std::filesystem::rename(folder.file("b.bin", "1"), path);
  EXPECT_FALSE(is_still_at(fd.get(), path));
  std::filesystem::remove(path);
  EXPECT_FALSE(is_still_at(fd.get(), path));
}

TEST(FileFacts, KnowTheFileSystemOfAnOpenFile) {
  constexpr std::uint64_t kProc = 0x9fa0;  // PROC_SUPER_MAGIC
  const Fd proc = open_file("/proc", O_RDONLY | O_DIRECTORY);
  EXPECT_EQ(file_system_of(proc.get()), kProc);
  EXPECT_EQ(file_system_of(-1), std::nullopt);
}

}  // namespace
}  // namespace stoker::os
