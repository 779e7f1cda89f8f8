// An io_uring. Belongs to one thread at a time; it may be made in one thread and used in another.
// Memory given to requests must stay until their completions were seen: the destructor does not wait for them.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include <liburing.h>

namespace stoker::os {

class Ring {
 public:
  Ring() noexcept { ring_.ring_fd = -1; }
  Ring(Ring&& other) noexcept : ring_(std::exchange(other.ring_, none())) {}
  Ring& operator=(Ring&& other) noexcept {
    std::swap(ring_, other.ring_);
    return *this;
  }
  ~Ring();

  // Room for `entries` requests to be queued and four times as many completions. On refusal (containers often forbid
  // io_uring: EPERM; old kernels lack it: ENOSYS) the ring is empty and `error_number` says why.
  static Ring try_make(unsigned entries, int& error_number) noexcept;

  explicit operator bool() const noexcept { return ring_.ring_fd >= 0; }
  int descriptor() const noexcept { return ring_.ring_fd; }  // can be read (poll) once a completion is there
  // Whether requests may say IOSQE_CQE_SKIP_SUCCESS (Linux 5.17).
  bool can_skip_success() const noexcept { return (ring_.features & IORING_FEAT_CQE_SKIP) != 0; }
  bool supports(int opcode) const noexcept;  // IORING_OP_...
  // A table of `count` descriptors that live in the ring alone, not in the process (Linux 5.19). False: refused.
  bool make_file_table(unsigned count) noexcept;

  io_uring_sqe* sqe() noexcept { return io_uring_get_sqe(&ring_); }  // null when the queue is full: submit() first
  // Makes `sqe` a request that completes, once, as soon as `fd` can be read.
  static void prepare_wait_readable(io_uring_sqe* sqe, int fd) noexcept;
  unsigned queued() const noexcept { return io_uring_sq_ready(&ring_); }

  // Hands the queue to the kernel. 0, or a negated error number; what was not taken stays queued.
  int submit() noexcept;
  // The same, then waits until a completion is there. -ETIME after `timeout`; -EINTR after a signal.
  int submit_and_wait(std::chrono::nanoseconds timeout) noexcept;

  // Calls `use(user_data, result)` for each completion that is there; returns how many. `use` may queue requests.
  template <typename Use>
  unsigned take_completions(Use&& use) {
    unsigned count = 0;
    io_uring_cqe* cqe = nullptr;
    while (io_uring_peek_cqe(&ring_, &cqe) == 0 && cqe != nullptr) {
      const std::uint64_t user_data = cqe->user_data;
      const int result = cqe->res;
      io_uring_cqe_seen(&ring_, cqe);
      use(user_data, result);
      ++count;
    }
    return count;
  }

 private:
  static io_uring none() noexcept {
    io_uring ring{};
    ring.ring_fd = -1;
    return ring;
  }
  io_uring ring_{};
};

}  // namespace stoker::os
