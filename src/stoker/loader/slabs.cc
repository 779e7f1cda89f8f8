#include "stoker/loader/slabs.h"

#include <algorithm>
#include <utility>

#include "stoker/os/fork.h"

namespace stoker::loader {
namespace {

constexpr std::uint64_t kRoomyShare = 4;  // of the budget: the part that roomy slabs may take

}  // namespace

SlabPool::SlabPool(std::uint64_t limit_bytes, std::shared_ptr<DeviceRuntime> device, std::function<void()> on_release,
                   std::shared_ptr<os::SharedRegion> shared)
    : on_release_(std::move(on_release)),
      budget_(limit_bytes),
      device_(std::move(device)),
      shared_(std::move(shared)),
      generation_(os::fork_generation()) {}

SlabPool::~SlabPool() {
  for (const auto& slab : all_) {
    if (slab->event != nullptr) device_->destroy_event(slab->event);
    if (slab->pinned) device_->unpin(slab->arena.data());
  }
}

void SlabPool::collect_locked() noexcept {
  std::erase_if(retiring_, [&](Slab* slab) {
    if (!device_->is_done(slab->event)) return false;
    device_->destroy_event(std::exchange(slab->event, nullptr));
    free_.push_back(slab);
    return true;
  });
}

void SlabPool::drop_locked(Slab* slab) noexcept {
  if (slab->pinned) device_->unpin(slab->arena.data());
  budget_.give_back(slab->arena.size());
  std::erase_if(all_, [&](const auto& owned) { return owned.get() == slab; });
}

Slab* SlabPool::free_fit_locked(std::size_t bytes) noexcept {
  // The one used last is the one whose pages are in the cache.
  for (auto it = free_.rbegin(); it != free_.rend(); ++it) {
    if ((*it)->arena.size() >= bytes) {
      Slab* const slab = *it;
      free_.erase(std::next(it).base());
      return slab;
    }
  }
  return nullptr;
}

Slab* SlabPool::acquire(std::size_t bytes, std::size_t roomy_bytes) {
  const std::scoped_lock lock(mutex_);
  collect_locked();
  if (Slab* const slab = free_fit_locked(bytes)) return slab;
  const bool is_plenty = budget_.used_bytes() + os::Arena::rounded(roomy_bytes) <= budget_.limit_bytes() / kRoomyShare;
  if (is_plenty && !device_) bytes = std::max(bytes, roomy_bytes);  // pinning would touch every page
  const std::size_t need = os::Arena::rounded(bytes);
  while (!budget_.try_take(need)) {
    if (free_.empty()) return nullptr;
    drop_locked(free_.back());  // too small for this batch: make room
    free_.pop_back();
  }
  auto slab = std::make_unique<Slab>();
  try {
    slab->arena = os::Arena(bytes, shared_);
  } catch (...) {
    budget_.give_back(need);
    throw;
  }
  if (device_) slab->pinned = device_->pin(slab->arena.data(), slab->arena.size());
  all_.push_back(std::move(slab));
  return all_.back().get();
}

void SlabPool::release(Slab* slab) noexcept {
  if (os::fork_generation() != generation_)
    return;  // a forked child: the mutex may be locked for ever, and the pool is not its own
  {
    void* const event = slab->pinned ? device_->record_event() : nullptr;
    const std::scoped_lock lock(mutex_);
    if (event != nullptr) {
      slab->event = event;
      retiring_.push_back(slab);
    } else if (slab->pinned) {
      drop_locked(slab);  // no event, no way to know when the device is done: unpinning waits for it, reuse would not
    } else {
      free_.push_back(slab);
    }
  }
  const std::scoped_lock lock(callback_mutex_);
  if (on_release_) on_release_();
}

bool SlabPool::is_exhausted(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  if (!retiring_.empty()) return false;
  std::uint64_t reusable = budget_.limit_bytes() - budget_.used_bytes();
  for (const Slab* slab : free_) {
    if (slab->arena.size() >= bytes) return false;
    reusable += slab->arena.size();
  }
  return reusable < os::Arena::rounded(bytes);
}

void SlabPool::forget_on_release() {
  const std::scoped_lock lock(callback_mutex_);
  on_release_ = nullptr;
}

std::uint64_t SlabPool::count() const {
  const std::scoped_lock lock(mutex_);
  return all_.size();
}

std::uint64_t SlabPool::free_count() const {
  const std::scoped_lock lock(mutex_);
  return free_.size() + retiring_.size();
}

bool SlabPool::waits_for_device() const {
  const std::scoped_lock lock(mutex_);
  return !retiring_.empty();
}

}  // namespace stoker::loader
