// Starting another program, and the signals that then concern it. One thread.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <signal.h>
#include <sys/types.h>

#include "stoker/base/error.h"
#include "stoker/os/ended.h"

namespace stoker::os {

// Our environment, "NAME=VALUE" each, with these added or in place of ours.
std::vector<std::string> environment_with(const std::map<std::string, std::string>& added);

// Where our parent left SIGCHLD ignored, how a child ended is lost; not from here on.
void keep_ended_children() noexcept;

// Of posix_spawnp; names the program.
Error spawn_error(int error_number, const std::string& program, const std::string& hint);

// A child that shares our terminal, our process group and our descriptors. It starts with the signals that we had at
// first: nothing blocked, SIGPIPE not ignored.
class Child {
 public:
  // `command[0]` is looked up in PATH. `environment` is added to ours. Throws Error, naming the command.
  Child(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const noexcept { return pid_; }
  std::optional<Ended> ended() noexcept;  // does not wait
  void send(int signal) noexcept;

 private:
  pid_t pid_ = -1;
  std::optional<Ended> ended_;
};

// Takes SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and SIGCHLD away from this thread, to be waited for, until
// it is destroyed. Make it before the child and before any thread.
class SignalGate {
 public:
  SignalGate();
  ~SignalGate();
  SignalGate(const SignalGate&) = delete;
  SignalGate& operator=(const SignalGate&) = delete;

  struct Caught {
    int signal = 0;
    bool reached_group = false;  // then the child has got it too: from the terminal, or sent to the process group
  };
  std::optional<Caught> wait(std::chrono::nanoseconds timeout) noexcept;

 private:
  void start_witness() noexcept;
  void end_witness() noexcept;
  bool witness_has(int signal) noexcept;

  sigset_t before_;
  pid_t witness_ = -1;  // a process of our group that blocks every signal: what waits there was sent to the group
};

}  // namespace stoker::os
