#include "stoker/os/isolated.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/os/cgroup.h"
#include "stoker/os/child.h"
#include "stoker/os/process.h"
#include "stoker/os/spawn.h"

namespace stoker::os {
namespace {

constexpr int kReportFd = 3;
constexpr const char* kOwner = "STOKER_OWNER";           // a variable that descendants inherit
constexpr auto kLooks = std::chrono::milliseconds(250);  // between two looks at all threads of all processes

// Of no other program that this or any other process has started.
std::string new_owner() {
  static std::atomic<std::uint64_t> count{0};
  return fmt::format("{}-{}-{}.", ::getpid(), std::chrono::steady_clock::now().time_since_epoch().count(), ++count);
}

struct Pipe {
  Fd from, to;

  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw system_error(errno, "make", "a pipe");
    from = Fd(ends[0]);
    const Fd lowest(ends[1]);
    // Not one of those that the child's ends become, so that none is overwritten before it was moved.
    to = Fd(::fcntl(lowest.get(), F_DUPFD_CLOEXEC, kReportFd + 1));
    if (!to) throw system_error(errno, "make", "a pipe");
    (void)::fcntl(from.get(), F_SETFL, O_NONBLOCK);
  }
};

bool is_owned(int pid, const std::string& owner) {
  const std::string variables = read_small_file(fmt::format("/proc/{}/environ", pid)).value_or("");
  return variables.find(fmt::format("{}={}", kOwner, owner)) != std::string::npos;
}

// When it started, in the kernel's ticks; none: it is gone, or only waits to be reaped. Numbers are reused, this is
// not.
std::optional<std::uint64_t> start_of(int pid) noexcept {
  try {
    const auto stat = read_small_file(fmt::format("/proc/{}/stat", pid));
    if (!stat) return std::nullopt;
    std::istringstream fields(stat->substr(stat->rfind(')') + 1));
    std::string state, ignored;
    std::uint64_t start = 0;
    fields >> state;
    for (int field = 4; field < 22; ++field) fields >> ignored;
    if (!(fields >> start) || state == "Z" || state == "X") return std::nullopt;
    return start;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

Isolated::Isolated(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment) {
  (void)::prctl(PR_SET_CHILD_SUBREAPER, 1);
  keep_ended_children();
  std::map<std::string, std::string> added = environment;
  added["STOKER_REPORT_FD"] = std::to_string(kReportFd);
  added[kOwner] = owner_ = new_owner();
  Pipe pipes[3];
  pid_ = spawn(command, {.environment = added,
                         .descriptors = {{STDIN_FILENO, Spawn::kNull},
                                         {STDOUT_FILENO, pipes[0].to.get()},
                                         {STDERR_FILENO, pipes[1].to.get()},
                                         {kReportFd, pipes[2].to.get()}},
                         .default_signals = {SIGPIPE, SIGINT, SIGTERM, SIGHUP},
                         .has_group = true,
                         .hint = "name the command as the shell would find it"});
  for (int i = 0; i < 3; ++i) streams_[i] = std::move(pipes[i].from);
  seen_.emplace(pid_, start_of(pid_).value_or(0));
  guard_.emplace(mark());
}

std::string Isolated::mark() const {
  const auto start = start_of(pid_);
  const auto boot = read_small_file("/proc/sys/kernel/random/boot_id");
  if (!start || !boot) return "";
  return fmt::format("{} {} {} {} {}", pid_, *start, boot->substr(0, boot->find('\n')), owner_, ::getsid(0));
}

bool end_marked(const std::string& mark) noexcept {
  try {
    std::istringstream fields(mark);
    int pid = 0;
    std::uint64_t start = 0;
    std::string boot, owner;
    if (!(fields >> pid >> start >> boot) || pid < 2) return false;
    if (read_small_file("/proc/sys/kernel/random/boot_id").value_or("").substr(0, boot.size()) != boot) return false;
    int session = -1;
    fields >> owner;
    if (!(fields >> session)) session = -1;  // 0: of a leader outside this container
    std::vector<int> all;
    const auto now = start_of(pid);
    if (now == start) {
      all = process_tree(pid);
      ::kill(-pid, SIGKILL);
    }
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
      const int other = std::atoi(entry.path().filename().c_str());
      if (other < 2) continue;
      // Of its group, which keeps its number while one of them lives; or one that left it.
      const bool is_member = !now && session >= 0 && ::getpgid(other) == pid && ::getsid(other) == session &&
                             start_of(other).value_or(0) >= start;
      if (is_member || (!owner.empty() && is_owned(other, owner))) all.push_back(other);
    }
    for (const int one : all) ::kill(one, SIGKILL);
    return !all.empty();
  } catch (const std::exception&) {
    return false;
  }
}

Isolated::~Isolated() {
  end();
}

std::optional<Ended> Isolated::ended() noexcept {
  if (ended_) return ended_;
  int status = 0;
  pid_t got = 0;
  while ((got = ::waitpid(pid_, &status, WNOHANG)) < 0 && errno == EINTR) {
  }
  if (got == pid_) ended_ = ended_of(status);
  if (got < 0) ended_ = Ended{.code = 2};  // other code reaped it
  return ended_;
}

void Isolated::listen(std::chrono::milliseconds time, const std::function<void(Stream, std::string_view)>& use) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point until = Clock::now() + time;
  std::array<char, 65536> buffer;
  const auto drain = [&](int i) {
    while (streams_[i]) {
      const ssize_t got = ::read(streams_[i].get(), buffer.data(), buffer.size());
      if (got > 0) {
        use(static_cast<Stream>(i), {buffer.data(), static_cast<std::size_t>(got)});
        if (Clock::now() >= until) return;
        continue;
      }
      if (got < 0 && errno == EINTR) continue;
      if (got == 0 || errno != EAGAIN) streams_[i] = Fd();
      return;
    }
  };
  while (true) {
    const bool over = ended().has_value();
    std::array<pollfd, 3> waiting;
    nfds_t count = 0;
    for (const Fd& stream : streams_) {
      if (stream) waiting[count++] = {stream.get(), POLLIN, 0};
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    const int wait_ms = over ? 0 : static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 20));
    (void)::poll(waiting.data(), count, wait_ms);
    for (int i = 0; i < 3; ++i) drain(i);
    if (over || Clock::now() >= until) break;
  }
  if (Clock::now() < look_at_) return;
  look_for_descendants();
  look_at_ = Clock::now() + kLooks;
}

void Isolated::look_for_descendants() noexcept {
  try {
    std::vector<int> known;
    if (!ended_) known.push_back(pid_);
    for (const auto& [pid, start] : seen_) {  // those that left their parent have children too
      if (pid != pid_ && is_there(pid)) known.push_back(pid);
    }
    for (const int pid : process_trees(std::move(known))) {
      if (seen_.contains(pid)) continue;
      if (const auto start = start_of(pid)) seen_.emplace(pid, *start);
    }
  } catch (const std::exception&) {
  }
}

// Those whose parent ended before anybody looked are our children now, and still have the variable that it gave them.
void Isolated::look_for_orphans() noexcept {
  try {
    for (const int pid : process_tree(::getpid())) {
      if (seen_.contains(pid) || !is_owned(pid, owner_)) continue;
      if (const auto start = start_of(pid)) seen_.emplace(pid, *start);
    }
  } catch (const std::exception&) {
  }
}

bool Isolated::is_there(int pid) const noexcept {
  const auto seen = seen_.find(pid);
  return seen != seen_.end() && start_of(pid) == seen->second;
}

void Isolated::send(int signal) noexcept {
  ::kill(-pid_, signal);
}

std::size_t Isolated::end() noexcept {
  if (std::exchange(is_cleared_, true)) return 0;
  look_for_descendants();
  look_for_orphans();
  const bool by_itself = ended().has_value();
  std::size_t left_behind = 0;
  for (const auto& [pid, start] : seen_) {
    if (pid == pid_ || !is_there(pid)) continue;
    left_behind += by_itself;
    ::kill(pid, SIGKILL);
  }
  ::kill(-pid_, SIGKILL);
  int status = 0;
  if (!ended_ && ::waitpid(pid_, &status, 0) == pid_) ended_ = ended_of(status);
  for (const auto& [pid, start] : seen_) {
    for (int tries = 0; pid != pid_ && tries < 200 && (::waitpid(pid, &status, WNOHANG) == 0 || is_there(pid));
         ++tries) {
      ::usleep(5000);
    }
  }
  guard_.reset();
  // torch names its shared memory torch_PID_... When that process is gone, no other removes it.
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with("torch_")) continue;
    const int owner = std::atoi(file.c_str() + 6);
    if (seen_.contains(owner) && !is_there(owner)) std::filesystem::remove(entry.path(), ignored);
  }
  return left_behind;
}

}  // namespace stoker::os
