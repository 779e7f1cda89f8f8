// A program that answers requests: lines to its standard input, lines from its standard output. It runs in a process
// group of its own, so that Ctrl-C at the terminal reaches us alone, and what it writes to its standard error is
// dropped. Belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "stoker/os/ended.h"
#include "stoker/os/fd.h"

namespace stoker::os {

class WorkerProcess {
 public:
  // `command[0]` is looked up in PATH. Throws Error, naming it.
  explicit WorkerProcess(const std::vector<std::string>& command);
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  ~WorkerProcess();  // kills it if it still runs, and waits for its end

  pid_t pid() const noexcept { return pid_; }
  int descriptor() const noexcept { return answers_.get(); }  // readable: an answer came, or the program ended

  // Sends `line` and a line end; waits where the pipe is full. False: the program reads no more.
  bool send(std::string_view line) noexcept;
  // Appends the whole lines that have come, without their ends. Does not wait. False: no more will come.
  bool receive(std::vector<std::string>& lines);
  void kill() noexcept;
  // Closes both pipes and waits for its end.
  Ended wait() noexcept;

 private:
  pid_t pid_ = -1;
  Fd requests_, answers_;
  std::string partial_;
  std::optional<Ended> ended_;
};

// For the program at the other end. Both are without effect where the system refuses.
void end_with_parent() noexcept;                              // SIGKILL once the process that started this one ends
void limit_address_space(std::uint64_t more_bytes) noexcept;  // beyond what is mapped now; malloc fails above it

}  // namespace stoker::os
