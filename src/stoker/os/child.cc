#include "stoker/os/child.h"

#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

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

Error spawn_error(int error_number, const std::string& program, std::string hint) {
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
  return Error(error.kind(), error.text(), std::move(hint));
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
}

SignalGate::~SignalGate() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<SignalGate::Caught> SignalGate::wait(std::chrono::nanoseconds timeout) noexcept {
  const sigset_t set = gated();
  const timespec time = {.tv_sec = timeout.count() / 1'000'000'000, .tv_nsec = timeout.count() % 1'000'000'000};
  siginfo_t info{};
  const int signal = sigtimedwait(&set, &info, &time);
  if (signal <= 0) return std::nullopt;
  return Caught{.signal = signal, .from_terminal = info.si_code == SI_KERNEL};
}

}  // namespace stoker::os
