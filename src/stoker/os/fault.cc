#include "stoker/os/fault.h"

#include <array>
#include <cassert>
#include <mutex>

#include <signal.h>
#include <unistd.h>

namespace stoker::os {
namespace {

struct Armed {
  bool on = false;
  Fault fault;
  std::uint32_t seen = 0;
  std::uint32_t hits = 0;
};

std::mutex mutex;
std::array<Armed, static_cast<std::size_t>(Call::kCount)> armed;

Armed& of(Call call) {
  return armed[static_cast<std::size_t>(call)];
}

bool any_on() {
  for (const Armed& one : armed) {
    if (one.on) return true;
  }
  return false;
}

}  // namespace

namespace detail {

std::atomic<bool> faults_armed{false};

bool take_fault(Call call, Fault& fault) noexcept {
  const std::lock_guard lock(mutex);
  Armed& one = of(call);
  if (!one.on) return false;
  const std::uint32_t number = one.seen++;
  if (number < one.fault.skip || one.hits >= one.fault.times) return false;
  ++one.hits;
  if (one.fault.kill) ::kill(::getpid(), SIGKILL);
  fault = one.fault;
  return true;
}

}  // namespace detail

InjectFault::InjectFault(Call call, Fault fault) : call_(call) {
  const std::lock_guard lock(mutex);
  assert(!of(call).on && "one fault per kind of call at a time");
  of(call) = Armed{true, fault, 0, 0};
  detail::faults_armed.store(true, std::memory_order_relaxed);
}

InjectFault::~InjectFault() {
  const std::lock_guard lock(mutex);
  of(call_).on = false;
  detail::faults_armed.store(any_on(), std::memory_order_relaxed);
}

std::uint32_t InjectFault::hits() const noexcept {
  const std::lock_guard lock(mutex);
  return of(call_).hits;
}

}  // namespace stoker::os
