#include "stoker/os/ended.h"

#include <sys/wait.h>

namespace stoker::os {

Ended ended_of(int wait_status) noexcept {
  if (WIFSIGNALED(wait_status)) return {.code = 128 + WTERMSIG(wait_status), .signal = WTERMSIG(wait_status)};
  return {.code = WEXITSTATUS(wait_status), .signal = 0};
}

}  // namespace stoker::os
