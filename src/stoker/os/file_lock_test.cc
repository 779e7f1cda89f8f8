#include "stoker/os/file_lock.h"

#include <cerrno>
#include <filesystem>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "stoker/os/file_facts.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::os {
namespace {

TEST(FileLock, KeepsOthersOutUntilItIsReleased) {
  const TempFolder folder;
  const std::string path = folder.path() + "/.lock";
  int error_number = 0;
  FileLock first = FileLock::try_take(path, error_number);
  ASSERT_TRUE(first);
  EXPECT_FALSE(FileLock::try_take(path, error_number));
  EXPECT_EQ(error_number, EWOULDBLOCK);

  FileLock moved = std::move(first);
  EXPECT_FALSE(FileLock::try_take(path, error_number));
  moved.release();
  EXPECT_FALSE(moved);
  EXPECT_TRUE(FileLock::try_take(path, error_number));
  EXPECT_TRUE(can_reach(path));
}

TEST(FileLock, WaitsForItsTurn) {
  const TempFolder folder;
  const std::string path = folder.path() + "/.lock";
  int error_number = 0;
  FileLock first = FileLock::try_take(path, error_number);
  std::jthread other([&] { first.release(); });
  EXPECT_TRUE(FileLock::wait_for(path, error_number));
}

// The holder removes the file before it releases the lock: the waiter must not hold a file that nobody else finds.
TEST(FileLock, IsNeverOnAFileThatWasRemoved) {
  const TempFolder folder;
  const std::string path = folder.path() + "/.lock";
  int error_number = 0;
  FileLock first = FileLock::try_take(path, error_number);
  std::jthread other([&] {
    std::filesystem::remove(path);
    first.release();
  });
  const FileLock second = FileLock::wait_for(path, error_number);
  other.join();
  ASSERT_TRUE(second);
  EXPECT_TRUE(can_reach(path));
  EXPECT_FALSE(FileLock::try_take(path, error_number));
}

TEST(FileLock, SaysWhyTheFileCannotBeMade) {
  const TempFolder folder;
  int error_number = 0;
  EXPECT_FALSE(FileLock::try_take(folder.path() + "/none/.lock", error_number));
  EXPECT_EQ(error_number, ENOENT);
}

}  // namespace
}  // namespace stoker::os
