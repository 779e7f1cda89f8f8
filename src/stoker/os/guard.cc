#include "stoker/os/guard.h"

#include <cerrno>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/os/fd.h"
#include "stoker/os/isolated.h"

namespace stoker::os {
namespace {

// Keeps nothing of ours open: not our output, which others may read to its end, nor the lock of a folder.
void keep_only(int line) noexcept {
  if (const int null = ::open("/dev/null", O_RDWR); null >= 0) {
    for (const int fd : {0, 1, 2}) {
      if (fd != line) ::dup2(null, fd);
    }
  }
  if (line != 3) ::dup2(line, 3);
  close_from(4);
}

[[noreturn]] void stand_guard(int line, const std::string& mark) noexcept {
  ::setsid();  // not in reach of what ends our group
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2}) ::signal(signal, SIG_IGN);
  ::prctl(PR_SET_NAME, "stoker-guard");
  keep_only(line);
  char word = 0;
  ssize_t got = 0;
  while ((got = ::read(3, &word, 1)) < 0 && errno == EINTR) {
  }
  if (got == 0) end_marked(mark);
  ::_exit(0);
}

}  // namespace

Guard::Guard(const std::string& mark) noexcept {
  int ends[2];
  if (mark.empty() || ::pipe2(ends, O_CLOEXEC) != 0) return;
  const Fd theirs(ends[0]);
  line_ = Fd(ends[1]);
  pid_ = ::fork();
  if (pid_ < 0) line_ = Fd();
  if (pid_ != 0) return;
  line_ = Fd();
  stand_guard(theirs.get(), mark);
}

void Guard::dismiss() noexcept {
  if (pid_ <= 0) return;
  const char word = 'd';
  while (::write(line_.get(), &word, 1) < 0 && errno == EINTR) {
  }
  line_ = Fd();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

}  // namespace stoker::os
