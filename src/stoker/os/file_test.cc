#include "stoker/os/file.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/os/fault.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::os {
namespace {

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t files_in(const std::string& folder) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

TEST(WriteFile, WritesAndReplaces) {
  const TempFolder folder;
  const std::string path = folder.path() + "/a.json";
  write_file(path, "one");
  write_file(path, "");
  EXPECT_EQ(content(path), "");
  write_file(path, std::string(100'000, 'x'));
  EXPECT_EQ(content(path), std::string(100'000, 'x'));
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(WriteFile, APrivateFileIsClosedToOthers) {
  const TempFolder folder;
  const std::string path = folder.path() + "/key";
  write_private_file(path, "secret");
  EXPECT_EQ(content(path), "secret");
  EXPECT_FALSE(others_may_read(path));
}

TEST(NewFile, AppearsWhenItIsWholeOrNotAtAll) {
  const TempFolder folder;
  const std::string path = folder.path() + "/a.bin";
  const std::string text = "half";
  {
    NewFile dropped(path);
    dropped.write(std::as_bytes(std::span(text)));
  }
  EXPECT_EQ(files_in(folder.path()), 0u);

  NewFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.write(std::as_bytes(std::span(text)));
  EXPECT_FALSE(std::filesystem::exists(path));
  file.commit();
  EXPECT_EQ(content(path), "halfhalf");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

struct Failure {
  Call call;
  int error_number;
  ErrorKind kind;
};

TEST(WriteFile, AnyFailureLeavesTheOldFileAndNothingElse) {
  const Failure failures[] = {
      {Call::open, EMFILE, ErrorKind::unavailable},  {Call::open, EACCES, ErrorKind::permission},
      {Call::write, ENOSPC, ErrorKind::unavailable}, {Call::write, EIO, ErrorKind::unavailable},
      {Call::fsync, ENOSPC, ErrorKind::unavailable}, {Call::fsync, EIO, ErrorKind::unavailable},
      {Call::close, EIO, ErrorKind::unavailable},    {Call::rename, EACCES, ErrorKind::permission},
  };
  for (const Failure& failure : failures) {
    const TempFolder folder;
    const std::string path = folder.file("a", "old");
    const InjectFault fault(failure.call, {.error_number = failure.error_number});
    try {
      write_file(path, "new");
      ADD_FAILURE() << "call " << static_cast<int>(failure.call);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), failure.kind) << error.message();
      EXPECT_NE(error.message().find(path), std::string::npos);
    }
    EXPECT_EQ(content(path), "old");
    EXPECT_EQ(files_in(folder.path()), 1u);
  }
}

TEST(WriteFile, AFullDiskSaysWhatToDo) {
  const TempFolder folder;
  const InjectFault fault(Call::write, {.error_number = ENOSPC});
  try {
    write_file(folder.path() + "/a", "new");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.hint().find("free some space"), std::string::npos);
  }
  EXPECT_EQ(files_in(folder.path()), 0u);
}

TEST(WriteFile, ShortAndInterruptedWritesAreContinued) {
  const TempFolder folder;
  const std::string path = folder.path() + "/a";
  {
    const InjectFault fault(Call::write, {.short_bytes = 3, .times = 2});
    write_file(path, "0123456789");
    EXPECT_EQ(fault.hits(), 2u);
  }
  EXPECT_EQ(content(path), "0123456789");
  for (const Call call : {Call::open, Call::write, Call::fsync, Call::rename}) {
    const InjectFault fault(call, {.error_number = EINTR, .times = 2});
    write_file(path, "abc");
    EXPECT_EQ(fault.hits(), 2u);
    EXPECT_EQ(content(path), "abc");
  }
}

TEST(WriteFile, AFolderThatCannotBeSyncedIsToldThoughTheFileIsWhole) {
  const TempFolder folder;
  const std::string path = folder.file("a", "old");
  const InjectFault fault(Call::fsync, {.error_number = EIO, .skip = 1});
  EXPECT_THROW(write_file(path, "new"), Error);
  EXPECT_EQ(content(path), "new");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(WriteFile, ThreadsThatWriteTheSameNameLeaveOneWholeFile) {
  const TempFolder folder;
  const std::string path = folder.path() + "/a";
  std::vector<std::jthread> threads;
  for (char letter = 'a'; letter < 'e'; ++letter) {
    threads.emplace_back([&path, letter] { write_file(path, std::string(10'000, letter)); });
  }
  threads.clear();
  const std::string text = content(path);
  EXPECT_EQ(text, std::string(10'000, text.at(0)));
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(WriteFile, AMissingFolderIsNotFound) {
  const TempFolder folder;
  try {
    write_file(folder.path() + "/none/a", "x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
  }
}

TEST(MakeFolders, MakesWhatIsMissingAndAcceptsWhatIsThere) {
  const TempFolder folder;
  const std::string deep = folder.path() + "/a/b//c/";
  make_folders(deep);
  make_folders(deep);
  EXPECT_TRUE(std::filesystem::is_directory(deep));
}

TEST(MakeFolders, AFileInTheWayIsAnError) {
  const TempFolder folder;
  folder.file("a", "x");
  EXPECT_THROW(make_folders(folder.path() + "/a"), Error);
  EXPECT_THROW(make_folders(folder.path() + "/a/b"), Error);
  EXPECT_THROW(make_folders(""), Error);
}

TEST(FileFacts, SayWhetherOthersMayReadIt) {
  const TempFolder folder;
  const std::string path = folder.file("a", "x");
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  EXPECT_FALSE(others_may_read(path));
  std::filesystem::permissions(path, std::filesystem::perms::others_read, std::filesystem::perm_options::add);
  EXPECT_TRUE(others_may_read(path));
  EXPECT_FALSE(others_may_read(folder.path() + "/none"));
}

TEST(WriteAside, GivesAWholeFileOrNothing) {
  const TempFolder folder;
  const std::string path = folder.path() + "/f", aside = folder.path() + "/aside", text = "0123456789";
  EXPECT_EQ(write_aside(aside, path, std::as_bytes(std::span(text))), 0);
  EXPECT_EQ(std::filesystem::file_size(path), 10u);
  for (const Call call : {Call::open, Call::write, Call::close, Call::rename}) {
    const InjectFault fault(call, {.error_number = ENOSPC});
    EXPECT_EQ(write_aside(aside, folder.path() + "/g", std::as_bytes(std::span(text))), ENOSPC);
    EXPECT_FALSE(std::filesystem::exists(aside));
    EXPECT_FALSE(std::filesystem::exists(folder.path() + "/g"));
  }
  EXPECT_EQ(write_aside(folder.path() + "/none/aside", path, {}), ENOENT);
}

TEST(WriteUnsyncedFile, ReplacesAFileAndLeavesNothingBesideIt) {
  const TempFolder folder;
  const std::string path = folder.path() + "/f";
  EXPECT_EQ(write_unsynced_file(path, "old"), 0);
  EXPECT_EQ(write_unsynced_file(path, "newer"), 0);
  EXPECT_EQ(std::filesystem::file_size(path), 5u);
  EXPECT_EQ(write_unsynced_file(folder.path() + "/none/f", "x"), ENOENT);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(MakePrivateFolder, TellsWhetherItMadeTheFolder) {
  const TempFolder folder;
  EXPECT_TRUE(make_private_folder(folder.path() + "/f"));
  EXPECT_FALSE(make_private_folder(folder.path() + "/f"));
  EXPECT_EQ(std::filesystem::status(folder.path() + "/f").permissions(), std::filesystem::perms::owner_all);
  EXPECT_THROW(make_private_folder(folder.path() + "/none/f"), Error);
}

TEST(RemoveFile, ToleratesThatThereIsNone) {
  const TempFolder folder;
  const std::string path = folder.file("f", "abc");
  EXPECT_EQ(remove_file(path), 0);
  EXPECT_EQ(remove_file(path), 0);
  EXPECT_NE(remove_file(folder.path()), 0);
  EXPECT_TRUE(is_ours(folder.path()));
  EXPECT_FALSE(is_ours(path));
}

}  // namespace
}  // namespace stoker::os
