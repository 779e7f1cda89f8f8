#include "interrupt.h"

#include <atomic>
#include <csignal>
#include <cstdlib>

#include "stoker/os/signal_handler.h"

namespace stoker::cli {
namespace {

std::atomic<bool> flag{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void on_interrupt(int) {
  if (flag.exchange(true)) std::_Exit(130);
}

}  // namespace

void watch_for_interrupt() {
  os::catch_signal(SIGINT, on_interrupt);
}

void watch_for_termination() {
  os::catch_signal(SIGTERM, on_interrupt);
  if (!os::is_signal_ignored(SIGHUP)) os::catch_signal(SIGHUP, on_interrupt);  // nohup stays in force
}

bool interrupted() noexcept {
  return flag.load(std::memory_order_relaxed);
}

}  // namespace stoker::cli
