// A system call that answers 0 or -1: asks for a failure on purpose first, and repeats the call after a signal. For os/
// alone. From any thread.
#pragma once

#include <cerrno>

#include "stoker/os/fault.h"

namespace stoker::os {

// Returns 0 or the error number, never EINTR.
template <typename Function>
int call(Call kind, Function&& function) {
  for (;;) {
    Fault fault;
    int error_number = 0;
    if (fault_now(kind, fault) && fault.error_number != 0) {
      error_number = fault.error_number;
    } else if (function() != 0) {
      error_number = errno;
    }
    if (error_number != EINTR) return error_number;
  }
}

}  // namespace stoker::os
