#include "stoker/os/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/os/fd.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::os {
namespace {

TEST(Terminal, KnowsItsSize) {
  const Fd terminal(::posix_openpt(O_RDWR | O_NOCTTY));
  if (!terminal) GTEST_SKIP() << "no pseudo terminal can be had";
  const winsize size = {.ws_row = 24, .ws_col = 132, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(::ioctl(terminal.get(), TIOCSWINSZ, &size), 0);
  EXPECT_TRUE(is_terminal(terminal.get()));
  EXPECT_EQ(terminal_size(terminal.get()), (TerminalSize{.rows = 24, .columns = 132}));
}

TEST(Terminal, AFileIsNone) {
  const TempFolder folder;
  const Fd file = open_file(folder.file("a", "text"), O_RDONLY);
  EXPECT_FALSE(is_terminal(file.get()));
  EXPECT_EQ(terminal_size(file.get()), TerminalSize());
  EXPECT_FALSE(is_in_foreground(file.get()));
}

TEST(Terminal, OpensStandardDescriptorsThatWereClosed) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (open_standard_descriptors()) ::_exit(1);
    ::close(kStdin);
    if (open_standard_descriptors()) ::_exit(2);
    ::close(kStdout);
    ::close(kStderr);
    if (!open_standard_descriptors()) ::_exit(3);
    for (const int fd : {kStdin, kStdout, kStderr}) {
      if (::fcntl(fd, F_GETFD) == -1) ::_exit(4);
    }
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace stoker::os
