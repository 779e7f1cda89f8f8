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

// How it ended, as a shell would say it. Waits.
int exit_code_of(pid_t pid) noexcept {
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(pid, &status, 0)) < 0 && errno == EINTR) {
  }
  if (ended != pid) return 0;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Reads until the program closes its output. False: `deadline` came first.
bool read_output(int reading, CaptureClock::time_point deadline, std::size_t most_bytes,
                 const std::function<void()>& check, std::string& output) {
  for (;;) {
    std::array<char, 4096> some;
    const ssize_t got = ::read(reading, some.data(), some.size());
    if (got == 0) return true;
    if (got > 0) {
      const std::size_t room = most_bytes - std::min(most_bytes, output.size());
      output.append(some.data(), std::min(static_cast<std::size_t>(got), room));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return true;
    if (check) check();
    const CaptureClock::duration left = deadline - CaptureClock::now();
    if (left <= CaptureClock::duration::zero()) return false;
    const int waited_for[] = {reading};
    wait_readable(waited_for, check ? std::min<CaptureClock::duration>(left, kCheckEvery) : left);
  }
}

}  // namespace

Captured capture(const std::vector<std::string>& command, std::chrono::milliseconds timeout, std::size_t most_bytes,
                 const std::function<void()>& check) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw system_error(errno, "make a pipe for", command[0]);
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  (void)::fcntl(reading.get(), F_SETFL, O_NONBLOCK);
  const pid_t pid = spawn_captured(command, writing.get());
  writing.reset();

  Captured captured;
  try {
    captured.timed_out = !read_output(reading.get(), CaptureClock::now() + timeout, most_bytes, check, captured.output);
  } catch (...) {
    ::kill(-pid, SIGKILL);
    (void)exit_code_of(pid);
    throw;
  }
  if (captured.timed_out) ::kill(-pid, SIGKILL);
  captured.code = exit_code_of(pid);
  return captured;
}

}  // namespace stoker::os
