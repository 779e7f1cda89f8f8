#include "stoker/os/ring.h"

#include <algorithm>
#include <atomic>
#include <cerrno>

#include <poll.h>

#include "stoker/os/fault.h"

namespace stoker::os {
namespace {

// A new ring may be mapped where another thread's ring was, by calls that a race detector does not see. This makes the
// end of the one visible before the start of the other.
std::atomic<unsigned> rings_ended{0};

constexpr unsigned kMaxEntries = 32768;  // IORING_MAX_ENTRIES of the kernel

int enter_fault() noexcept {
  Fault fault;
  return fault_now(Call::ring_enter, fault) ? fault.error_number : 0;
}

}  // namespace

// COOP_TASKRUN (Linux 5.19) spares the interrupts that completions would send to a running thread.
// SINGLE_ISSUER|DEFER_TASKRUN gave the same rates on small files (230,000/s on one ring, warm) and would tie the ring
// to the thread that made it, so that a destructor in another thread could not wait for requests in flight.
Ring Ring::try_make(unsigned entries, int& error_number) noexcept {
  Ring ring;
  Fault fault;
  error_number = 0;
  if (fault_now(Call::ring_setup, fault) && fault.error_number != 0) {
    error_number = fault.error_number;
    return ring;
  }
  entries = std::clamp(entries, 1u, kMaxEntries);
  for (const unsigned flags : {IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG, 0u}) {
    io_uring_params params{};
    params.flags = flags | IORING_SETUP_CQSIZE;
    params.cq_entries = entries * 4;
    const int result = io_uring_queue_init_params(entries, &ring.ring_, &params);
    if (result == 0) {
      error_number = 0;
      (void)rings_ended.load(std::memory_order_acquire);
      return ring;
    }
    ring.ring_ = none();
    error_number = -result;
    if (error_number != EINVAL) break;
  }
  return ring;
}

Ring::~Ring() {
  if (!*this) return;
  rings_ended.fetch_add(1, std::memory_order_acq_rel);
  io_uring_queue_exit(&ring_);
}

bool Ring::supports(int opcode) const noexcept {
  io_uring_probe* const probe = io_uring_get_probe_ring(const_cast<io_uring*>(&ring_));
  const bool supported = probe != nullptr && io_uring_opcode_supported(probe, opcode) != 0;
  io_uring_free_probe(probe);
  return supported;
}

bool Ring::make_file_table(unsigned count) noexcept {
  return io_uring_register_files_sparse(&ring_, count) == 0;
}

int Ring::submit() noexcept {
  if (const int error_number = enter_fault(); error_number != 0) return -error_number;
  const int result = io_uring_submit(&ring_);
  return std::min(result, 0);
}

int Ring::submit_and_wait(std::chrono::nanoseconds timeout) noexcept {
  if (const int error_number = enter_fault(); error_number != 0) return -error_number;
  constexpr auto kForever = std::chrono::hours(24 * 365);
  const auto bounded = std::clamp<std::chrono::nanoseconds>(timeout, std::chrono::nanoseconds::zero(), kForever);
  __kernel_timespec limit{};
  limit.tv_sec = bounded.count() / 1'000'000'000;
  limit.tv_nsec = bounded.count() % 1'000'000'000;
  io_uring_cqe* cqe = nullptr;
  const int result = io_uring_submit_and_wait_timeout(&ring_, &cqe, 1, bounded < kForever ? &limit : nullptr, nullptr);
  return std::min(result, 0);
}

void Ring::prepare_wait_readable(io_uring_sqe* sqe, int fd) noexcept {
  io_uring_prep_poll_add(sqe, fd, POLLIN);
}

}  // namespace stoker::os
