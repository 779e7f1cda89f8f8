#include "stoker/os/terminal.h"

#include <initializer_list>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace stoker::os {

bool is_terminal(int fd) noexcept {
  return ::isatty(fd) == 1;
}

TerminalSize terminal_size(int fd) noexcept {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0) return {};
  return {.rows = size.ws_row, .columns = size.ws_col};
}

bool is_in_foreground(int fd) noexcept {
  return ::tcgetpgrp(fd) == ::getpgrp();
}

bool open_standard_descriptors() noexcept {
  bool stdout_was_closed = false;
  for (const int fd : {kStdin, kStdout, kStderr}) {
    if (::fcntl(fd, F_GETFD) != -1) continue;
    (void)::open("/dev/null", O_RDWR);  // gets the lowest number: this one
    stdout_was_closed = stdout_was_closed || fd == kStdout;
  }
  return stdout_was_closed;
}

}  // namespace stoker::os
