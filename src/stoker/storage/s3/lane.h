// Many exchanges at once on one thread: libcurl's multi interface driven by epoll, with the handles and connections
// that are used again. Belongs to one thread at a time; wake() may be called from any.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "stoker/os/event.h"
#include "stoker/os/poller.h"
#include "stoker/storage/s3/transfer.h"

namespace stoker::storage::s3 {

class Lane {
 public:
  using Clock = std::chrono::steady_clock;

  Lane();  // throws Error
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  void keep_connections(std::size_t most);

  Signer& signer() noexcept { return signer_; }
  std::unique_ptr<Transfer> take_transfer();
  void recycle(std::unique_ptr<Transfer> transfer);

  // `owner` comes back from next_finished().
  void start(Transfer& transfer, void* owner);
  void cancel(Transfer& transfer);  // not from within a callback of libcurl
  // Moves bytes on all sockets that are ready; waits for one at most `timeout`. Callbacks run in here. Throws Error
  // where the user interrupts this thread (storage/interruption.h).
  void step(std::chrono::nanoseconds timeout);
  struct Finished {
    void* owner = nullptr;  // null: none
    int curl_code = 0;
  };
  Finished next_finished();

  void wake() noexcept;
  bool take_wake() noexcept;  // whether wake() was called since the last call

  int descriptor() const noexcept { return poller_.descriptor(); }  // can be read when step() has something to do
  std::chrono::nanoseconds until_timer() const noexcept;            // step() has something to do after that

 private:
  static int on_socket(void* easy, int descriptor, int what, void* self, void* of_socket);
  static int on_timer(void* multi, long milliseconds, void* self);

  void* multi_;  // a CURLM*
  os::Poller poller_;
  os::Event event_;
  bool woken_ = false;
  Clock::time_point timer_ = Clock::time_point::max();
  std::vector<std::unique_ptr<Transfer>> free_;
  Signer signer_;
};

}  // namespace stoker::storage::s3
