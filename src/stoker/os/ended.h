// How a process ended.
#pragma once

namespace stoker::os {

struct Ended {
  int code = 0;    // what a shell would give: 128 + signal after a signal
  int signal = 0;  // 0: it exited

  bool is_success() const noexcept { return code == 0; }
};

Ended ended_of(int wait_status) noexcept;  // as waitpid() gives it

}  // namespace stoker::os
