// Wakes the I/O threads that found no room: none for bytes, no unit, no batch to plan, or no slab to read into. Rung by
// the thread that gives such room back. Safe from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "stoker/loader/signals.h"
#include "stoker/storage/fetcher.h"

namespace stoker::loader {

class ReaderBell {
 public:
  explicit ReaderBell(Signals& signals) noexcept : signals_(signals) {}
  ReaderBell(const ReaderBell&) = delete;
  ReaderBell& operator=(const ReaderBell&) = delete;

  // One I/O thread. It sets `refused` before it looks for room and clears it if it found some: a ring then also ends
  // the wait of its fetcher.
  struct Reader {
    storage::Fetcher* fetcher = nullptr;
    std::atomic<bool> refused{false};
  };
  void add(Reader& reader) { readers_.push_back(&reader); }  // before the threads start; borrowed for good

  void ring() noexcept;
  void ring_locked() noexcept;

  // How often it was rung. Ask before looking for room, and pass the answer to wait().
  std::uint64_t rings_locked() const noexcept { return rings_; }
  // Waits until it was rung since `rings`, the engine stops, or `timeout` has passed.
  void wait(std::uint64_t rings, std::chrono::milliseconds timeout);

 private:
  void wake() noexcept;

  Signals& signals_;
  std::vector<Reader*> readers_;
  std::uint64_t rings_ = 0;  // Signals::mutex
};

}  // namespace stoker::loader
