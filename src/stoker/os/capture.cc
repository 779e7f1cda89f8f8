#include "stoker/os/capture.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/os/child.h"
#include "stoker/os/event.h"
#include "stoker/os/fd.h"

extern char** environ;

namespace stoker::os {
namespace {

using CaptureClock = std::chrono::steady_clock;

pid_t spawn_captured(const std::vector<std::string>& command, int output) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (const int signal : {SIGPIPE, SIGINT}) sigaddset(&defaults, signal);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  pid_t pid = -1;
  const int error_number = posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error_number != 0) throw spawn_error(error_number, command[0], "");
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
