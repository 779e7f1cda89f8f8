// The pool of slabs that batches are made in: each is mapped once, reused, and counted against a byte budget.
// A pinned slab comes back only when the device has finished with it. Safe from any thread; outlives the loader for as
// long as a batch is held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "stoker/base/budget.h"
#include "stoker/loader/device.h"
#include "stoker/os/arena.h"

namespace stoker::loader {

struct Slab {
  os::Arena arena;
  bool pinned = false;
  void* event = nullptr;  // set while the device may still be reading
};

class SlabPool {
 public:
  // `on_release` is called (without any lock of the pool) after each release, until forget_on_release().
  // Slabs are ranges of `shared`, where it is given.
  SlabPool(std::uint64_t limit_bytes, std::shared_ptr<DeviceRuntime> device, std::function<void()> on_release,
           std::shared_ptr<os::SharedRegion> shared = nullptr);
  ~SlabPool();

  // A slab of at least `bytes`, or null when the budget does not allow one more and none is free. A new one has
  // `roomy_bytes` where there is plenty: it then fits later batches that are longer, and need not be made again. Pages
  // that no batch reaches are never touched.
  Slab* acquire(std::size_t bytes, std::size_t roomy_bytes = 0);
  // From any thread. A pinned slab goes through a device event first.
  void release(Slab* slab) noexcept;
  // True when no slab of `bytes` can be had until somebody releases one: none free, none waiting for the device.
  bool is_exhausted(std::size_t bytes);

  void forget_on_release();  // returns when no call of it is running

  std::uint64_t used_bytes() const noexcept { return budget_.used_bytes(); }
  std::uint64_t limit_bytes() const noexcept { return budget_.limit_bytes(); }
  std::uint64_t peak_bytes() const noexcept { return budget_.peak_bytes(); }
  std::uint64_t count() const;       // slabs that exist
  std::uint64_t free_count() const;  // of them, free or waiting for the device
  bool waits_for_device() const;

 private:
  void collect_locked() noexcept;         // moves slabs whose event is done to the free ones
  void drop_locked(Slab* slab) noexcept;  // unmaps
  Slab* free_fit_locked(std::size_t bytes) noexcept;

  mutable std::mutex mutex_;
  std::mutex callback_mutex_;
  std::function<void()> on_release_;
  Budget budget_;
  std::shared_ptr<DeviceRuntime> device_;
  std::shared_ptr<os::SharedRegion> shared_;
  std::vector<std::unique_ptr<Slab>> all_;
  std::vector<Slab*> free_, retiring_;
  std::uint64_t generation_;
};

}  // namespace stoker::loader
