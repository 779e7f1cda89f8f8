// Reads of many threads from one store through one fetcher: they share its connections, its retries and its limit of
// requests in flight. A thread of its own drives the fetcher; it starts with the first read.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/storage/backend.h"
#include "stoker/storage/fetcher.h"

namespace stoker::storage {

class SharedReads {
 public:
  // A longer read is several requests, which are in flight at the same time.
  static constexpr std::uint64_t kPiece = 8 << 20;

  // `depth`: the most requests in flight.
  SharedReads(const Backend& backend, std::size_t depth) noexcept : backend_(backend), depth_(depth) {}
  ~SharedReads();  // no thread may be in read()
  SharedReads(const SharedReads&) = delete;
  SharedReads& operator=(const SharedReads&) = delete;

  // Fills `into` with the bytes of `source`, of the same backend, from `offset` on. Blocks. From any thread.
  // Throws Error naming the source, also where it is no longer the version that was opened. Where the user interrupts
  // this thread (storage/interruption.h), every read ends, those of other threads too.
  // `meanwhile` runs on this thread once the requests are on their way. It may not touch `into`, and does not throw.
  void read(const Source& source, std::uint64_t offset, std::span<std::byte> into,
            const std::function<void()>& meanwhile = {});

 private:
  // One call of read(); it lives on the stack of its caller.
  struct Call {
    std::size_t left = 0;  // pieces
    std::optional<Error> error;
    std::condition_variable done;
  };
  struct Piece {
    const Source* source = nullptr;
    std::uint64_t offset = 0;
    std::span<std::byte> into;
    Call* call = nullptr;
  };

  void start_locked();
  void run() noexcept;
  void loop();
  void settle_locked(Piece& piece, std::optional<Error> error);
  void await_locked(std::unique_lock<std::mutex>& lock, Call& call);
  void fail_all(const Error& error);

  const Backend& backend_;
  const std::size_t depth_;
  std::mutex mutex_;
  std::condition_variable changed_;  // queue_, is_ending_ or is_interrupted_
  std::deque<Piece> queue_;
  std::vector<Piece> flying_;  // by the tag of their fetch; no call: free
  std::optional<Error> broken_;
  bool is_ending_ = false;
  bool is_interrupted_ = false;
  std::unique_ptr<Fetcher> fetcher_;  // of the thread; wake() by all
  std::thread thread_;
};

}  // namespace stoker::storage
