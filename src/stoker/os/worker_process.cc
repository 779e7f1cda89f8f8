#include "stoker/os/worker_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/os/cgroup.h"
#include "stoker/os/child.h"
#include "stoker/os/spawn.h"

namespace stoker::os {
namespace {

struct BothEnds {
  Fd own, childs;
};

// Above the numbers that the child's ends get, so that no dup2 overwrites one that is still needed.
BothEnds moved_up(int own, int childs) {
  const Fd first(own), second(childs);
  BothEnds ends{Fd(::fcntl(own, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)),
                Fd(::fcntl(childs, F_DUPFD_CLOEXEC, STDERR_FILENO + 1))};
  if (!ends.own || !ends.childs) throw system_error(errno, "make", "a pipe");
  return ends;
}

// A socket, because writing to one that nobody reads can fail without a SIGPIPE.
BothEnds make_requests() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw system_error(errno, "make", "a socket");
  return moved_up(ends[0], ends[1]);
}

BothEnds make_answers() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw system_error(errno, "make", "a pipe");
  return moved_up(ends[0], ends[1]);
}

}  // namespace

WorkerProcess::WorkerProcess(const std::vector<std::string>& command) {
  keep_ended_children();
  BothEnds requests = make_requests(), answers = make_answers();
  pid_ = spawn(command, {.descriptors = {{STDIN_FILENO, requests.childs.get()},
                                         {STDOUT_FILENO, answers.childs.get()},
                                         {STDERR_FILENO, Spawn::kNull}},
                         .default_signals = {SIGPIPE, SIGINT, SIGTERM, SIGHUP},
                         .has_group = true});
  requests_ = std::move(requests.own);
  answers_ = std::move(answers.own);
  (void)::fcntl(answers_.get(), F_SETFL, O_NONBLOCK);
}

WorkerProcess::~WorkerProcess() {
  kill();
  wait();
}

bool WorkerProcess::send(std::string_view line) noexcept {
  const auto send_all = [&](std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(requests_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  };
  return requests_ && send_all(line) && send_all("\n");
}

bool WorkerProcess::receive(std::vector<std::string>& lines) {
  std::array<char, 65536> buffer;
  while (answers_) {
    const ssize_t got = ::read(answers_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) return false;
    std::string_view text(buffer.data(), static_cast<std::size_t>(got));
    for (std::size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
      partial_ += text.substr(0, end);
      lines.push_back(std::exchange(partial_, {}));
    }
    partial_ += text;
  }
  return false;
}

void WorkerProcess::kill() noexcept {
  if (!ended_) ::kill(-pid_, SIGKILL);
}

Ended WorkerProcess::wait() noexcept {
  requests_.reset();
  answers_.reset();
  while (!ended_) {
    int status = 0;
    const pid_t got = ::waitpid(pid_, &status, 0);
    if (got == pid_) ended_ = ended_of(status);
    if (got < 0 && errno != EINTR) ended_ = Ended{.code = 2};  // other code waited for it
  }
  return *ended_;
}

void end_with_parent() noexcept {
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void limit_address_space(std::uint64_t more_bytes) noexcept {
  unsigned long long pages = 0;
  const auto statm = read_small_file("/proc/self/statm");
  if (!statm || std::sscanf(statm->c_str(), "%llu", &pages) != 1) return;
  const std::uint64_t mapped = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, mapped + more_bytes);
  (void)::setrlimit(RLIMIT_AS, &limit);
}

}  // namespace stoker::os
