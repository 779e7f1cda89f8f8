// A flag that one thread raises and another one waits for, together with other descriptors: what wakes a thread that
// waits for several things in one place.
#pragma once

#include <chrono>
#include <span>
#include <utility>

#include "stoker/os/fd.h"

namespace stoker::os {

class Event {
 public:
  Event();  // throws Error
  // The same without exceptions: false, and the error number, where the system refuses one.
  static Event try_make(int& error_number) noexcept;
  explicit operator bool() const noexcept { return static_cast<bool>(fd_); }

  void raise() noexcept;  // from any thread
  bool take() noexcept;   // lowers the flag; whether it was raised. For the thread that waits
  int descriptor() const noexcept { return fd_.get(); }

 private:
  explicit Event(Fd fd) noexcept : fd_(std::move(fd)) {}

  Fd fd_;
};

// Waits until one of `descriptors` can be read, or `timeout` has passed; numbers below 0 are left out. May end early
// after a signal.
void wait_readable(std::span<const int> descriptors, std::chrono::nanoseconds timeout) noexcept;

}  // namespace stoker::os
