#include "stoker/loader/working_memory.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/round.h"

namespace stoker::loader {
namespace {

constexpr std::uint64_t kLeast = 256 * 1024;

// Pieces come in few sizes, at most a quarter above what was asked for: samples differ a little, and the next may be
// larger than this one.
std::uint64_t piece_for(std::uint64_t bytes) noexcept {
  bytes = std::max(bytes, kLeast);
  const std::uint64_t step = std::bit_floor(bytes) / 4;
  return os::Arena::rounded(round_up(bytes, step));
}

}  // namespace

WorkingMemory::WorkingMemory(std::uint64_t limit_bytes, std::uint64_t most_bytes, std::function<void()> wake_idle)
    : most_(std::min(most_bytes, os::Arena::within(limit_bytes))),
      wake_idle_(std::move(wake_idle)),
      budget_(limit_bytes) {}

void WorkingMemory::put_back_locked(Workspace& space) noexcept {
  if (space.arena.size() == 0) return;
  space.scratch.work_in({});
  free_.push_back(std::exchange(space.arena, {}));
}

// False: others have what is missing.
bool WorkingMemory::take_locked(Workspace& space, std::uint64_t bytes) {
  auto fit = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->size() >= bytes && (fit == free_.end() || it->size() < fit->size())) fit = it;
  }
  if (fit != free_.end()) {
    space.arena = std::move(*fit);
    free_.erase(fit);
  } else {
    std::uint64_t size = piece_for(bytes);
    while (!budget_.try_take(size)) {
      if (!free_.empty()) {
        budget_.give_back(free_.back().size());
        free_.pop_back();  // too small
      } else if (size > os::Arena::rounded(bytes)) {
        size = os::Arena::rounded(bytes);
      } else {
        return false;
      }
    }
    try {
      space.arena = os::Arena(size);
    } catch (...) {
      budget_.give_back(size);
      throw;
    }
  }
  space.scratch.work_in(space.arena.bytes());
  return true;
}

void WorkingMemory::provide(Workspace& space, std::uint64_t bytes) {
  std::unique_lock lock(mutex_);
  put_back_locked(space);
  changed_.notify_all();  // those ahead may have waited for this piece
  const std::uint64_t ticket = next_ticket_++;
  waiting_.fetch_add(1, std::memory_order_relaxed);
  const auto leave = [&] {
    ++first_ticket_;
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    changed_.notify_all();
  };
  try {
    bool asked = false;
    while (ticket != first_ticket_ || !take_locked(space, bytes)) {
      if (stopping_) throw Error(ErrorKind::unavailable, "the loader was closed");
      if (std::exchange(asked, true)) {
        changed_.wait(lock);
      } else {
        lock.unlock();
        wake_idle_();
        lock.lock();
      }
    }
  } catch (...) {
    leave();
    throw;
  }
  leave();
}

void WorkingMemory::give_back(Workspace& space) noexcept {
  const std::scoped_lock lock(mutex_);
  put_back_locked(space);
  changed_.notify_all();
}

void WorkingMemory::unmap_free() noexcept {
  const std::scoped_lock lock(mutex_);
  for (const os::Arena& piece : free_) budget_.give_back(piece.size());
  free_.clear();
}

void WorkingMemory::stop() noexcept {
  const std::scoped_lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

}  // namespace stoker::loader
