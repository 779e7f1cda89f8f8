// A program that may misbehave: in a process group of its own, with its output in pipes that are always drained, and a
// pipe on which it may report (the descriptor's number is in STOKER_REPORT_FD). When it has ended, or is dropped,
// everything it started is ended too: its group, and what left the group but descends from it. One thread; the process
// becomes the reaper of its orphaned descendants. Should we be killed, a guard ends it all the same.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "stoker/os/ended.h"
#include "stoker/os/fd.h"
#include "stoker/os/guard.h"

namespace stoker::os {

enum class Stream : std::uint8_t { out, err, report };

class Isolated {
 public:
  // `command[0]` is looked up in PATH; `environment` is added to ours. Throws Error, naming the command.
  Isolated(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment);
  Isolated(const Isolated&) = delete;
  Isolated& operator=(const Isolated&) = delete;
  ~Isolated();  // as end()

  pid_t pid() const noexcept { return pid_; }
  // By which a later process knows this one again, for end_marked(), should we be killed before we can end it.
  std::string mark() const;

  // Hands over what it wrote, as it comes, for at most `time`; returns early when it has ended. Call it once more after
  // that: what was written last is still in the pipes.
  void listen(std::chrono::milliseconds time, const std::function<void(Stream, std::string_view)>& use);
  std::optional<Ended> ended() noexcept;  // none: it runs
  void send(int signal) noexcept;         // to its group

  // Ends whatever is left of it, and removes the shared memory that torch made for its processes. Returns how many
  // processes had been left behind by one that had ended itself.
  std::size_t end() noexcept;

 private:
  void look_for_descendants() noexcept;
  void look_for_orphans() noexcept;
  bool is_there(int pid) const noexcept;  // still the same process

  pid_t pid_ = -1;
  std::string owner_;
  std::optional<Ended> ended_;
  Fd streams_[3];
  std::optional<Guard> guard_;
  std::map<int, std::uint64_t> seen_;  // it and its descendants, so far, and when they started
  std::chrono::steady_clock::time_point look_at_;
  bool is_cleared_ = false;
};

// Ends the process of that mark, its group and its descendants, if it still runs and is the same one. Says whether it
// did.
bool end_marked(const std::string& mark) noexcept;

}  // namespace stoker::os
