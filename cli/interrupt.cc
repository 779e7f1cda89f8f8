#include "interrupt.h"

#include <atomic>
#include <csignal>
#include <cstdlib>

#include "stoker/os/signal_handler.h"

namespace stoker::cli {
namespace {

std::atomic<int> first_signal{0};  // 0: none
static_assert(std::atomic<int>::is_always_lock_free);

void on_interrupt(int number) {
  int none = 0;
  if (!first_signal.compare_exchange_strong(none, number)) std::_Exit(128 + number);
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
  return first_signal.load(std::memory_order_relaxed) != 0;
}

int interruption_code() noexcept {
  return 128 + (interrupted() ? first_signal.load(std::memory_order_relaxed) : SIGINT);
}

}  // namespace stoker::cli
