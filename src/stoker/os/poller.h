// Waits for many descriptors at once (epoll): the sockets of a client, and what wakes its thread. A Poller belongs to
// one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "stoker/os/fd.h"

namespace stoker::os {

class Poller {
 public:
  struct Ready {
    int descriptor = Fd::kNone;
    bool readable = false;
    bool writable = false;
    bool failed = false;  // the peer hung up, or there is an error to collect
  };

  Poller();  // throws Error

  // Adds `descriptor`, or changes what it is watched for. False: the kernel refuses.
  bool watch(int descriptor, bool for_reading, bool for_writing) noexcept;
  void forget(int descriptor) noexcept;
  // Fills `out` and returns how many are ready; 0 after `timeout` or a signal.
  std::size_t wait(std::span<Ready> out, std::chrono::nanoseconds timeout) noexcept;
  // Can be read once one of the watched descriptors is ready.
  int descriptor() const noexcept { return fd_.get(); }

 private:
  Fd fd_;
  std::vector<bool> watched_;  // by descriptor; one that was closed and opened again may be in it wrongly
};

}  // namespace stoker::os
