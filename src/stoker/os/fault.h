// Failures on purpose, for tests: each system call of os/ and storage/ asks here first. Costs one relaxed load when
// unused.
#pragma once

#include <atomic>
#include <cstdint>

namespace stoker::os {

enum class Call : std::uint8_t {
  open,
  read,
  mmap,
  close,
  stat,
  write,
  fsync,
  rename,
  unlink,
  lock,
  step,  // of a change to memory that processes share
  ring_setup,
  ring_enter,
  thread,
  kCount
};

// What the next call of a kind does instead of working.
struct Fault {
  int error_number = 0;           // EINTR, EIO, ENOSPC, EMFILE, ...; 0 with short_bytes: a short read or write
  std::int64_t short_bytes = -1;  // the call moves at most this many bytes
  std::uint32_t skip = 0;         // let this number of calls pass first
  std::uint32_t times = 1;        // then fail this number of calls
  bool kill = false;              // the process ends there, as by kill -9
};

// Arms one fault for one kind of call, for all threads, until the object is destroyed.
class InjectFault {
 public:
  InjectFault(Call call, Fault fault);
  ~InjectFault();
  InjectFault(const InjectFault&) = delete;
  InjectFault& operator=(const InjectFault&) = delete;
  std::uint32_t hits() const noexcept;  // how many calls failed so far

 private:
  Call call_;
};

namespace detail {
extern std::atomic<bool> faults_armed;
bool take_fault(Call call, Fault& fault) noexcept;
}  // namespace detail

// True if this call must fail now; `fault` says how.
inline bool fault_now(Call call, Fault& fault) noexcept {
  return detail::faults_armed.load(std::memory_order_relaxed) && detail::take_fault(call, fault);
}

// Between two stores to memory that processes share: a process may end there, and does in tests.
inline void shared_step() noexcept {
  Fault fault;
  (void)fault_now(Call::step, fault);
}

}  // namespace stoker::os
