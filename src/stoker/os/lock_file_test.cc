#include "stoker/os/lock_file.h"

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/os/fault.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::os {
namespace {

class Locks : public ::testing::Test {
 protected:
  TempFolder folder_;
  std::string path_ = folder_.path() + "/lock";
};

TEST_F(Locks, ExcludeOtherLockFilesFromTheSameByteOnly) {
  LockFile one(path_), other(path_);
  EXPECT_TRUE(one.try_lock(7));
  EXPECT_FALSE(other.try_lock(7));
  EXPECT_TRUE(other.is_held(7));
  EXPECT_FALSE(one.is_held(7)) << "its own lock is not another's";
  EXPECT_TRUE(other.try_lock(8));
  one.unlock(7);
  EXPECT_FALSE(other.is_held(7));
  EXPECT_TRUE(other.try_lock(7));
}

TEST_F(Locks, EndWithTheObjectAndStayWhenItIsMoved) {
  LockFile other(path_);
  {
    LockFile one(path_);
    one.lock(1);
    LockFile moved = std::move(one);
    EXPECT_TRUE(other.is_held(1));
  }
  EXPECT_FALSE(other.is_held(1));
}

TEST_F(Locks, EndWithAProcessThatIsKilled) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    LockFile mine(path_);
    mine.lock(3);
    (void)!::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  LockFile lock(path_);
  EXPECT_FALSE(lock.try_lock(3));
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  lock.lock(3);  // waits until the child is gone
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(Locks, AreNotKeptByAChildThatOutlivesTheirOwner) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    LockFile mine(path_);
    mine.lock(3);
    if (::fork() == 0) {  // says so once it runs: what it does first is to let the lock go
      const pid_t grandchild = ::getpid();
      (void)!::write(ready[1], &grandchild, sizeof grandchild);
      for (;;) ::pause();
    }
    ::raise(SIGKILL);
  }
  pid_t grandchild = 0;
  ASSERT_EQ(::read(ready[0], &grandchild, sizeof grandchild), static_cast<ssize_t>(sizeof grandchild));
  int status = 0;
  ASSERT_EQ(::waitpid(owner, &status, 0), owner);
  LockFile lock(path_);
  EXPECT_TRUE(lock.try_lock(3));
  ::kill(grandchild, SIGKILL);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(Locks, AreWaitedFor) {
  LockFile one(path_);
  one.lock(0);
  std::atomic<bool> had{false};
  std::jthread waiting([&] {
    LockFile other(path_);
    other.lock(0);
    had = true;
  });
  EXPECT_FALSE(had);
  one.unlock(0);
  waiting.join();
  EXPECT_TRUE(had);
}

TEST_F(Locks, TellWhetherTheirFileWasReplaced) {
  const LockFile lock(path_);
  EXPECT_TRUE(lock.is_in_place());
  std::filesystem::remove(path_);
  EXPECT_FALSE(lock.is_in_place());
  const LockFile other(path_);
  EXPECT_FALSE(lock.is_in_place());
  EXPECT_TRUE(other.is_in_place());
}

TEST_F(Locks, ThatCannotBeHadAreErrorsThatNameTheFile) {
  LockFile lock(path_);
  {
    const InjectFault fault(Call::lock, {.error_number = EINTR, .times = 3});
    EXPECT_TRUE(lock.try_lock(1));
  }
  const InjectFault fault(Call::lock, {.error_number = ENOLCK});
  try {
    lock.lock(2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find(path_), std::string::npos);
  }
  EXPECT_THROW(LockFile(folder_.path() + "/none/lock"), Error);
}

}  // namespace
}  // namespace stoker::os
