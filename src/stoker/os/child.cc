#include "stoker/os/child.h"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/os/fd.h"
#include "stoker/os/spawn.h"

extern char** environ;

namespace stoker::os {
namespace {

sigset_t gated() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD}) sigaddset(&set, signal);
  return set;
}

// Sent to the process, and not yet taken by any of its threads.
bool is_signal_pending(pid_t process, int signal) noexcept {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("ShdPnd:")) continue;
    const std::uint64_t bits = std::strtoull(line.c_str() + sizeof "ShdPnd:", nullptr, 16);
    return (bits >> (signal - 1) & 1) != 0;
  }
  return false;
}

}  // namespace

std::vector<std::string> environment_with(const std::map<std::string, std::string>& added) {
  std::vector<std::string> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (!added.contains(text.substr(0, text.find('=')))) variables.push_back(text);
  }
  for (const auto& [name, value] : added) variables.push_back(name + "=" + value);
  return variables;
}

void keep_ended_children() noexcept {
  struct sigaction now {};
  if (sigaction(SIGCHLD, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) signal(SIGCHLD, SIG_DFL);
}

Error spawn_error(int error_number, const std::string& program, const std::string& hint) {
  if (error_number == EACCES && program.find('/') == std::string::npos) {
    // Also where only a folder of PATH could not be entered.
    const char* const path = getenv("PATH");
    std::istringstream folders(path == nullptr ? "" : path);
    bool is_there = false;
    for (std::string folder; std::getline(folders, folder, ':');) {
      is_there |= access(fmt::format("{}/{}", folder.empty() ? "." : folder, program).c_str(), F_OK) == 0;
    }
    if (!is_there) error_number = ENOENT;
  }
  const Error error = system_error(error_number, "run", program);
  return Error(error.kind(), error.text(), hint);
}

Child::Child(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment) {
  keep_ended_children();
  pid_ = spawn(command, {.environment = environment,
                         .default_signals = {SIGPIPE, SIGINT},
                         .hint = "name the command as the shell would find it, such as `python train.py`"});
}

std::optional<Ended> Child::ended() noexcept {
  if (ended_) return ended_;
  int status = 0;
  const pid_t got = waitpid(pid_, &status, WNOHANG);
  if (got < 0 && errno == ECHILD) return ended_ = Ended{.code = 2, .signal = 0};
  if (got != pid_) return std::nullopt;
  return ended_ = ended_of(status);
}

void Child::send(int signal) noexcept {
  if (!ended_) kill(pid_, signal);
}

SignalGate::SignalGate() {
  const sigset_t set = gated();
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  start_witness();
}

SignalGate::~SignalGate() {
  end_witness();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void SignalGate::start_witness() noexcept {
  const pid_t parent = getpid();
  witness_ = fork();
  if (witness_ != 0) return;  // below 0: no process was to be had, and only the terminal's signals are told apart
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  close_from(0);
  if (getppid() != parent) _exit(0);
  for (;;) pause();
}

void SignalGate::end_witness() noexcept {
  if (witness_ <= 0) return;
  kill(witness_, SIGKILL);
  while (waitpid(witness_, nullptr, 0) < 0 && errno == EINTR) {
  }
  const sigset_t ended = [] {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    return set;
  }();
  const timespec now{};
  sigtimedwait(&ended, nullptr, &now);
  witness_ = -1;
}

// The kernel signals the members of a group one after another, so it may come a moment later there than here.
bool SignalGate::witness_has(int signal) noexcept {
  if (witness_ <= 0) return false;
  for (int attempt = 0; attempt < 10; ++attempt) {
    if (is_signal_pending(witness_, signal)) {
      end_witness();  // it would show the same signal for ever
      start_witness();
      return true;
    }
    const timespec moment = {.tv_sec = 0, .tv_nsec = 2'000'000};
    nanosleep(&moment, nullptr);
  }
  return false;
}

std::optional<SignalGate::Caught> SignalGate::wait(std::chrono::nanoseconds timeout) noexcept {
  const sigset_t set = gated();
  const timespec time = {.tv_sec = timeout.count() / 1'000'000'000, .tv_nsec = timeout.count() % 1'000'000'000};
  siginfo_t info{};
  const int signal = sigtimedwait(&set, &info, &time);
  if (signal <= 0) return std::nullopt;
  if (signal == SIGCHLD) return Caught{.signal = signal};
  return Caught{.signal = signal, .reached_group = info.si_code == SI_KERNEL || witness_has(signal)};
}

}  // namespace stoker::os
