#include "interrupt.h"

#include <atomic>

#include <signal.h>
#include <unistd.h>

namespace stoker::cli {
namespace {

std::atomic<bool> flag{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void on_interrupt(int) {
  if (flag.exchange(true)) _exit(130);
}

}  // namespace

void watch_for_interrupt() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
}

void watch_for_termination() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // nohup stays in force
}

bool interrupted() noexcept {
  return flag.load(std::memory_order_relaxed);
}

}  // namespace stoker::cli
