// A TCP port on this machine alone (127.0.0.1), for questions that fit into one small message. A Listener belongs to
// one thread; wake() may be called from any.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <signal.h>

#include "stoker/os/fd.h"

namespace stoker::os {

class Listener {
 public:
  // 0: any port that is free. Throws Error, naming the port.
  explicit Listener(std::uint16_t port);

  std::uint16_t port() const noexcept { return port_; }
  // The next visitor; none after wake(). Reads and writes of a visitor give up after `patience`.
  Fd next(std::chrono::milliseconds patience) noexcept;
  void wake() noexcept;  // for good

 private:
  Fd socket_, wake_;
  std::uint16_t port_ = 0;
};

// What a visitor says, up to and with `end`; empty if it says more than `most` bytes, leaves, or takes too long.
std::string hear(int visitor, std::string_view end, std::size_t most);
bool tell(int visitor, std::string_view text) noexcept;  // false: not all of it

// Keeps every signal away from threads that are started while it lives.
class NoSignals {
 public:
  NoSignals() noexcept;
  ~NoSignals();
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace stoker::os
