// Memory that processes share: who finds it, what a kill leaves, and what is refused.
#include "stoker/os/shared_segment.h"

#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/os/file_lock.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::os {
namespace {

class SharedMemory : public ::testing::Test {
 protected:
  std::unique_ptr<SharedSegment> attach(std::uint64_t key = 1, std::uint64_t bytes = 1 << 20) {
    why_.clear();
    return SharedSegment::attach({.folder = folder_.path(),
                                  .key = key,
                                  .head_bytes = 4096,
                                  .bytes = bytes,
                                  .patience = std::chrono::milliseconds(20)},
                                 why_);
  }
  // A process that attaches, writes an x, and stays until it is killed.
  pid_t start_holder(std::uint64_t key = 1) {
    int ends[2];
    if (::pipe(ends) != 0) return -1;
    const pid_t child = ::fork();
    if (child == 0) {
      const auto segment = attach(key);
      if (segment) std::memset(segment->bytes().data(), 'x', 10);
      (void)!::write(ends[1], segment ? "y" : "n", 1);
      for (;;) ::pause();
    }
    char answer = 0;
    EXPECT_EQ(::read(ends[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    ::close(ends[0]);
    ::close(ends[1]);
    return child;
  }
  static void kill_holder(pid_t child) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  std::vector<std::string> lists() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) found.push_back(entry.path());
    return found;
  }

  TempFolder folder_;
  std::string why_;
};

TEST_F(SharedMemory, IsTheSameForAllWhoGiveTheSameKey) {
  const auto one = attach(1);
  ASSERT_TRUE(one) << why_;
  ASSERT_TRUE(one->reserve(8192, 100));
  std::memset(one->bytes().data() + 8192, 'a', 100);

  const auto same = attach(1), other = attach(2);

  ASSERT_TRUE(same && other) << why_;
  EXPECT_EQ(same->bytes()[8200], std::byte{'a'});
  EXPECT_EQ(other->bytes()[0], std::byte{0});
}

TEST_F(SharedMemory, LeavesNothingWhenTheLastOneEnds) {
  auto one = attach(), other = attach();
  EXPECT_EQ(lists().size(), 1u);
  one.reset();
  EXPECT_EQ(lists().size(), 1u);
  other.reset();
  EXPECT_EQ(lists().size(), 0u);
}

TEST_F(SharedMemory, IsFoundInAnotherProcessAndOutlivesTheOneThatMadeIt) {
  const pid_t maker = start_holder();
  const auto second = attach();
  ASSERT_TRUE(second) << why_;
  EXPECT_EQ(second->bytes()[0], std::byte{'x'});

  kill_holder(maker);
  const auto late = attach();

  ASSERT_TRUE(late) << why_;
  EXPECT_EQ(late->bytes()[0], std::byte{'x'});
}

TEST_F(SharedMemory, OfAKilledJobIsGoneAndNotUsedAgain) {
  kill_holder(start_holder());
  EXPECT_EQ(lists().size(), 1u);

  const auto segment = attach();

  ASSERT_TRUE(segment) << why_;
  EXPECT_EQ(segment->bytes()[0], std::byte{0});
}

TEST_F(SharedMemory, ListsOfKilledJobsAreRemovedByAnyOtherJob) {
  kill_holder(start_holder(1));
  const pid_t alive = start_holder(2);

  attach(3);

  EXPECT_EQ(lists().size(), 1u) << "the one of the job that lives";
  kill_holder(alive);
}

TEST_F(SharedMemory, StaysWithTheParentWhenAForkedChildDropsIt) {
  auto segment = attach();
  ASSERT_TRUE(segment) << why_;
  segment->bytes()[0] = std::byte{'x'};
  const pid_t child = ::fork();
  if (child == 0) {
    segment.reset();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);

  const auto late = attach();

  ASSERT_TRUE(late) << why_;
  EXPECT_EQ(late->bytes()[0], std::byte{'x'});
}

TEST_F(SharedMemory, IsRefusedWhereAnotherProcessKeepsTheLock) {
  const auto segment = attach();
  int error_number = 0;
  FileLock lock = FileLock::try_take(lists().front(), error_number);
  ASSERT_TRUE(lock);

  EXPECT_FALSE(attach());

  EXPECT_NE(why_.find("locked"), std::string::npos) << why_;
  lock.release();
  EXPECT_TRUE(attach()) << why_;
}

TEST_F(SharedMemory, IsRefusedWhereItCannotBe) {
  EXPECT_FALSE(attach(1, std::uint64_t{1} << 55));
  EXPECT_NE(why_.find("of shared memory: "), std::string::npos) << why_;
  EXPECT_EQ(lists().size(), 0u);
  EXPECT_FALSE(SharedSegment::attach({.folder = folder_.path() + "/nowhere", .key = 1, .bytes = 4096}, why_));
  EXPECT_NE(why_.find("No such file"), std::string::npos) << why_;
}

TEST_F(SharedMemory, IsRefusedWhereTheListIsAnotherUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  const auto segment = attach();
  ASSERT_EQ(::chown(lists().front().c_str(), 12345, 12345), 0);

  EXPECT_FALSE(attach());

  EXPECT_NE(why_.find("is not a file of this user"), std::string::npos) << why_;
}

}  // namespace
}  // namespace stoker::os
