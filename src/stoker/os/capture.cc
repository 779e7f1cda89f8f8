#include "stoker/os/capture.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/os/event.h"
#include "stoker/os/fd.h"
#include "stoker/os/spawn.h"

namespace stoker::os {
namespace {

using CaptureClock = std::chrono::steady_clock;

// In a process group of its own: a timeout ends all that the command has started.
pid_t spawn_captured(const std::vector<std::string>& command, int output) {
  const pid_t pid = spawn(command, {.descriptors = {{STDIN_FILENO, Spawn::kNull}, {STDOUT_FILENO, output}},
                                    .default_signals = {SIGPIPE, SIGINT},
                                    .has_group = true});
  return pid;
}

}  // namespace

Captured capture(const std::vector<std::string>& command, std::chrono::milliseconds timeout, std::size_t most_bytes) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw system_error(errno, "make a pipe for", command[0]);
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  (void)::fcntl(reading.get(), F_SETFL, O_NONBLOCK);
  const pid_t pid = spawn_captured(command, writing.get());
  writing.reset();

  Captured captured;
  const CaptureClock::time_point deadline = CaptureClock::now() + timeout;
  for (;;) {
    std::array<char, 4096> some;
    const ssize_t got = ::read(reading.get(), some.data(), some.size());
    if (got == 0) break;
    if (got > 0) {
      const std::size_t room = most_bytes - std::min(most_bytes, captured.output.size());
      captured.output.append(some.data(), std::min(static_cast<std::size_t>(got), room));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) break;
    const auto left = deadline - CaptureClock::now();
    if (left <= CaptureClock::duration::zero()) {
      captured.timed_out = true;
      break;
    }
    const int waited_for[] = {reading.get()};
    wait_readable(waited_for, left);
  }
  if (captured.timed_out) ::kill(-pid, SIGKILL);
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(pid, &status, 0)) < 0 && errno == EINTR) {
  }
  if (ended == pid) captured.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return captured;
}

}  // namespace stoker::os
