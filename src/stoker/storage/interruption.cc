#include "stoker/storage/interruption.h"

#include <algorithm>
#include <utility>

#include "stoker/base/error.h"

namespace stoker::storage {
namespace {

thread_local Interruption* in_force = nullptr;

}  // namespace

Interruption::Interruption(std::function<bool()> asked)
    : asked_(std::move(asked)), asker_(std::this_thread::get_id()) {}

bool Interruption::is_raised() {
  if (!raised_.load(std::memory_order_relaxed) && std::this_thread::get_id() == asker_ && asked_()) raise();
  return raised_.load(std::memory_order_relaxed);
}

InterruptionScope::InterruptionScope(Interruption* interruption) noexcept
    : before_(std::exchange(in_force, interruption)) {}

InterruptionScope::~InterruptionScope() {
  in_force = before_;
}

Interruption* interruption_in_force() noexcept {
  return in_force;
}

void check_interruption() {
  if (in_force != nullptr && in_force->is_raised()) throw Error(ErrorKind::unavailable, "interrupted");
}

void pause_interruptibly(std::chrono::nanoseconds length) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + length;
  for (Clock::time_point now = Clock::now(); now < end; now = Clock::now()) {
    check_interruption();
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(end - now, kAskEvery));
  }
}

}  // namespace stoker::storage
