// Starting threads, which fails where a limit of processes is reached; tests make it fail on purpose.
#pragma once

#include <system_error>
#include <thread>
#include <utility>

#include "stoker/os/fault.h"

namespace stoker::os {

// Throws std::system_error, as std::thread does.
template <typename Function>
std::thread start_thread(Function&& function) {
  Fault fault;
  if (fault_now(Call::thread, fault)) throw std::system_error(fault.error_number, std::generic_category());
  return std::thread(std::forward<Function>(function));
}

}  // namespace stoker::os
