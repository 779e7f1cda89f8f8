#include "stoker/os/fork.h"

#include <atomic>

#include <pthread.h>

namespace stoker::os {
namespace {
std::atomic<std::uint64_t> generation{0};
}

std::uint64_t fork_generation() noexcept {
  static const int registered =
      ::pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
  (void)registered;
  return generation.load(std::memory_order_relaxed);
}

}  // namespace stoker::os
