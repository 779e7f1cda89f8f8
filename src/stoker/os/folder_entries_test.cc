#include "stoker/os/folder_entries.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "stoker/os/fault.h"
#include "stoker/os/file_facts.h"
#include "stoker/os/read_file.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::os {
namespace {

TEST(FolderEntries, LinkRenameAndRemoveOneName) {
  const TempFolder folder;
  const std::string a = folder.file("a", "one"), b = folder.path() + "/b", c = folder.path() + "/c";
  EXPECT_EQ(link_entry(a, b), 0);
  EXPECT_EQ(facts_of(a).inode, facts_of(b).inode);
  EXPECT_EQ(link_entry(a, b), EEXIST);
  EXPECT_EQ(rename_entry(a, c), 0);
  EXPECT_FALSE(exists(a));
  EXPECT_EQ(remove_entry(b), 0);
  EXPECT_EQ(remove_entry(b), ENOENT);
  EXPECT_EQ(read_text(c), "one");
}

TEST(FolderEntries, MakeAndRemoveFolders) {
  const TempFolder folder;
  const std::string path = folder.path() + "/new";
  EXPECT_EQ(make_folder(path + "/below"), ENOENT);
  EXPECT_EQ(make_folder(path), 0);
  EXPECT_EQ(make_folder(path), EEXIST);
  folder.file("new/a", "one");
  EXPECT_EQ(remove_empty_folder(path), ENOTEMPTY);
  EXPECT_EQ(remove_entry(path), EISDIR);
  EXPECT_EQ(remove_entry(path + "/a"), 0);
  EXPECT_EQ(remove_empty_folder(path), 0);
}

TEST(FolderEntries, ExchangeTwoFoldersInOneStep) {
  const TempFolder folder;
  folder.file("old/a", "old");
  folder.file("new/a", "new");
  const std::string old = folder.path() + "/old", fresh = folder.path() + "/new";
  if (exchange_entries(fresh, old) == EINVAL) GTEST_SKIP() << "not on this file system";
  EXPECT_EQ(read_text(old + "/a"), "new");
  EXPECT_EQ(read_text(fresh + "/a"), "old");
  EXPECT_EQ(exchange_entries(fresh, folder.path() + "/none"), ENOENT);
}

TEST(FolderEntries, RenameFailsOnPurpose) {
  const TempFolder folder;
  const std::string a = folder.file("a", "one"), b = folder.file("b", "two");
  {
    const InjectFault fault(Call::rename, {.error_number = EINTR});
    EXPECT_EQ(exchange_entries(a, b), 0);
  }
  const InjectFault fault(Call::rename, {.error_number = EIO, .times = 2});
  EXPECT_EQ(rename_entry(a, b), EIO);
  EXPECT_EQ(exchange_entries(a, b), EIO);
  EXPECT_EQ(read_text(a), "two");
}

}  // namespace
}  // namespace stoker::os
