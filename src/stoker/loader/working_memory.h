// The working memory of the workers: a share of memory_limit that they take turns with. Each works in a piece of its
// own and keeps it from sample to sample. One that needs more gives its piece back, waits in line, and gets what it
// asked for: a sample is refused only if it needs more than one sample may have, whatever the others hold.
//
// Why waiting ends: nobody holds a piece while it waits. Those ahead in the line get theirs as the others finish the
// sample they are at, and while somebody waits, nobody begins another sample in the piece it has.
//
// Safe from any thread; a Workspace belongs to one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "stoker/base/budget.h"
#include "stoker/base/scratch.h"
#include "stoker/os/arena.h"

namespace stoker::loader {

// What one worker works in.
struct Workspace {
  os::Arena arena;
  Scratch scratch;  // lies in the arena

  Workspace() { scratch.work_in({}); }
};

class WorkingMemory {
 public:
  // `most_bytes` is what one sample may have, at most all of `limit_bytes`. `wake_idle` is called, without any lock of
  // ours, when idle workers should give_way().
  WorkingMemory(std::uint64_t limit_bytes, std::uint64_t most_bytes, std::function<void()> wake_idle);

  // Makes the workspace one of at least `bytes`, which are at most most_bytes(); what it held is forgotten. Waits while
  // others work in what is missing. Throws Error(unavailable) if the system has no memory, or if it would have to wait
  // after stop().
  void provide(Workspace& space, std::uint64_t bytes);

  // Between two samples, and while idle: gives the piece to those who wait. Costs one load if nobody does.
  void give_way(Workspace& space) noexcept {
    if (is_wanted()) give_back(space);
  }
  bool is_wanted() const noexcept { return waiting_.load(std::memory_order_relaxed) != 0; }
  void give_back(Workspace& space) noexcept;

  void stop() noexcept;  // ends every wait, now and later
  void unmap_free() noexcept;

  std::uint64_t most_bytes() const noexcept { return most_; }
  std::uint64_t used_bytes() const noexcept { return budget_.used_bytes(); }
  std::uint64_t peak_bytes() const noexcept { return budget_.peak_bytes(); }

 private:
  void put_back_locked(Workspace& space) noexcept;
  bool take_locked(Workspace& space, std::uint64_t bytes);

  const std::uint64_t most_;
  const std::function<void()> wake_idle_;
  Budget budget_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<os::Arena> free_;
  std::uint64_t first_ticket_ = 0, next_ticket_ = 0;  // the line of those who wait
  std::atomic<std::uint64_t> waiting_{0};
  bool stopping_ = false;
};

}  // namespace stoker::loader
