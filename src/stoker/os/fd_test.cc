#include "stoker/os/fd.h"

#include <array>
#include <cerrno>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/os/fault.h"
#include "stoker/os/file.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::os {
namespace {

std::string first_bytes(const std::string& path, std::size_t bytes) {
  const Fd fd = open_file(path, O_RDONLY);
  std::string text(bytes, '?');
  read_exactly(fd.get(), std::as_writable_bytes(std::span(text)), 0, path);
  return text;
}

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

ErrorKind kind_of_opening(const std::string& path) {
  try {
    open_file(path, O_RDONLY);
  } catch (const Error& error) {
    EXPECT_NE(error.message().find(path), std::string::npos);
    return error.kind();
  }
  return ErrorKind::internal;
}

class FdTest : public ::testing::Test {
 protected:
  TempFolder folder_;
  std::string path_ = folder_.file("f", "hello world");
};

TEST_F(FdTest, ClosesOnceAndMovesOwnership) {
  Fd a = open_file(path_, O_RDONLY);
  const int raw = a.get();
  Fd b = std::move(a);
  EXPECT_FALSE(a);
  EXPECT_TRUE(is_open(raw));
  b = Fd();
  EXPECT_FALSE(is_open(raw));
}

TEST_F(FdTest, DescriptorsAreNotInherited) {
  EXPECT_NE(::fcntl(open_file(path_, O_RDONLY).get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(FdTest, AMissingFileIsNotFoundAndNamed) {
  EXPECT_EQ(kind_of_opening(folder_.path() + "/none"), ErrorKind::not_found);
}

TEST_F(FdTest, OutOfDescriptorsIsUnavailable) {
  const InjectFault fault(Call::open, {.error_number = EMFILE});
  EXPECT_EQ(kind_of_opening(path_), ErrorKind::unavailable);
  EXPECT_EQ(fault.hits(), 1u);
}

TEST_F(FdTest, InterruptedOpensAndReadsAreRepeated) {
  const InjectFault open_fault(Call::open, {.error_number = EINTR, .times = 3});
  const InjectFault read_fault(Call::read, {.error_number = EINTR, .times = 3});
  EXPECT_EQ(first_bytes(path_, 11), "hello world");
  EXPECT_EQ(open_fault.hits(), 3u);
  EXPECT_EQ(read_fault.hits(), 3u);
}

TEST_F(FdTest, ShortReadsAreContinued) {
  const InjectFault fault(Call::read, {.short_bytes = 2, .times = 4});
  EXPECT_EQ(first_bytes(path_, 11), "hello world");
  EXPECT_EQ(fault.hits(), 4u);
}

TEST_F(FdTest, ReadOnceLeavesFaultsToItsCaller) {
  const InjectFault fault(Call::read, {.error_number = EIO, .times = 100});
  std::array<std::byte, 4> into;
  const Fd fd = open_file(path_, O_RDONLY);
  EXPECT_EQ(read_once(fd.get(), into, 0), 4);
  EXPECT_EQ(read_once(-1, into, 0), -EBADF);
  EXPECT_EQ(fault.hits(), 0u);
}

TEST_F(FdTest, AFailingDiskIsNamedWithItsOffset) {
  const InjectFault fault(Call::read, {.error_number = EIO});
  try {
    first_bytes(path_, 11);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unavailable);
    EXPECT_EQ(error.message(), "cannot read at byte 0 of `" + path_ + "`: Input/output error");
  }
}

TEST_F(FdTest, AnEndThatComesTooEarlyIsCorrupt) {
  try {
    first_bytes(path_, 12);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    EXPECT_NE(error.message().find("ends at byte 11"), std::string::npos);
  }
}

TEST_F(FdTest, FileSizeTellsFilesFromFoldersAndPipes) {
  EXPECT_EQ(file_size(open_file(path_, O_RDONLY).get()), 11);
  EXPECT_EQ(file_size(open_file(folder_.path(), O_RDONLY).get()), -EISDIR);
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const Fd in(pipe[0]), out(pipe[1]);
  EXPECT_EQ(file_size(in.get()), -ENOTSUP);
  const InjectFault fault(Call::stat, {.error_number = EIO});
  EXPECT_EQ(file_size(open_file(path_, O_RDONLY).get()), -EIO);
}

TEST_F(FdTest, AFailingCloseIsToldAndStillCloses) {
  Fd fd = open_file(path_, O_RDONLY);
  const int raw = fd.get();
  const InjectFault fault(Call::close, {.error_number = EIO});
  EXPECT_EQ(fd.reset(), EIO);
  EXPECT_FALSE(is_open(raw));
}

TEST_F(FdTest, AChildClosesEveryDescriptorFromOneOn) {
  const Fd kept = open_file(path_, O_RDONLY);
  const Fd closed(::fcntl(kept.get(), F_DUPFD_CLOEXEC, 200));
  ASSERT_GE(closed.get(), 200);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    close_from(200);
    ::_exit(is_open(kept.get()) && !is_open(closed.get()) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(is_open(closed.get())) << "the parent keeps its own";
}

TEST_F(FdTest, FaultsLetTheirShareOfCallsPass) {
  const InjectFault fault(Call::open, {.error_number = EIO, .skip = 1, .times = 2});
  int error_number = 0;
  std::string answers;
  for (int i = 0; i < 4; ++i) {
    answers += try_open(AT_FDCWD, path_.c_str(), O_RDONLY, error_number) ? '+' : '-';
  }
  EXPECT_EQ(answers, "+--+");
}

}  // namespace
}  // namespace stoker::os
