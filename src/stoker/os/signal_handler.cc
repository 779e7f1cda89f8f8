#include "stoker/os/signal_handler.h"

#include <signal.h>

namespace stoker::os {

void catch_signal(int signal, void (*handler)(int)) noexcept {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigaction(signal, &action, nullptr);
}

bool is_signal_ignored(int signal) noexcept {
  struct sigaction action {};
  ::sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

}  // namespace stoker::os
