// A small process that outlives us by a moment: when we are gone and have not dismissed it, it ends what was in our
// care. Nothing but a crash or SIGKILL leaves it work to do. Make it while this process has one thread.
#pragma once

#include <string>

#include <sys/types.h>

#include "stoker/os/fd.h"

namespace stoker::os {

class Guard {
 public:
  Guard() noexcept = default;
  // Of the process with that mark (Isolated::mark). Where none can be started there is none: the mark is still known.
  explicit Guard(const std::string& mark) noexcept;
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() { dismiss(); }

  void dismiss() noexcept;
  pid_t pid() const noexcept { return pid_; }

 private:
  Fd line_;  // the guard reads the other end: a byte dismisses it, an end without one calls it
  pid_t pid_ = -1;
};

}  // namespace stoker::os
