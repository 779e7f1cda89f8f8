#include "stoker/loader/chunk_store.h"

#include <algorithm>

#include "stoker/base/round.h"

namespace stoker::loader {
namespace {

constexpr std::uint64_t kSlotAlign = 4096;
constexpr std::uint64_t kSlotBeside = 256;  // its entry, list nodes and place in the table

}  // namespace

std::uint64_t ChunkStore::bytes_for(std::uint64_t chunk_bytes) noexcept {
  return round_up(chunk_bytes, kSlotAlign) + kSlotBeside;
}

ChunkStore::ChunkStore(std::uint64_t limit_bytes, std::uint64_t chunk_bytes)
    : slot_bytes_(round_up(chunk_bytes, kSlotAlign)) {
  std::uint64_t slots = limit_bytes / bytes_for(chunk_bytes);
  while (slots > 0 && os::Arena::rounded(slots * slot_bytes_) + slots * kSlotBeside > limit_bytes) --slots;
  if (slots > 0) arena_ = os::Arena(slots * slot_bytes_);
  slots_.resize(slots);
  free_.reserve(slots);
  spare_.resize(slots);
  found_.reserve(slots);
}

bool ChunkStore::has(const ChunkKey& key) const {
  const std::scoped_lock lock(mutex_);
  return found_.contains(key);
}

ChunkStore::Lease ChunkStore::lease(const ChunkKey& key) {
  Lease lease;
  std::unique_lock lock(mutex_);
  while (true) {
    const auto known = found_.find(key);
    if (known == found_.end()) break;
    Slot& slot = slots_[known->second];
    if (!slot.is_filled) {
      changed_.wait(lock);
      continue;
    }
    return hold_locked(known->second);
  }
  ++figures_.misses;
  std::size_t number = 0;
  if (!free_.empty()) {
    number = free_.back();
    free_.pop_back();
  } else if (next_slot_ < slots_.size()) {
    number = next_slot_++;
  } else if (!idle_.empty()) {
    number = idle_.front();
    found_.erase(slots_[number].key);
    spare_.splice(spare_.begin(), idle_, idle_.begin());
    --figures_.chunks;
  } else {
    return lease;
  }
  Slot& slot = slots_[number];
  slot.key = key;
  slot.leases = 1;
  slot.is_filled = false;
  found_.emplace(key, number);
  lease.store_ = this;
  lease.slot_ = number;
  lease.data_ = address(number);
  return lease;
}

// A filled one.
ChunkStore::Lease ChunkStore::hold_locked(std::size_t slot) {
  if (slots_[slot].leases++ == 0) spare_.splice(spare_.begin(), idle_, slots_[slot].place);
  ++figures_.hits;
  Lease lease;
  lease.store_ = this;
  lease.slot_ = slot;
  lease.data_ = address(slot);
  lease.is_filled_ = true;
  return lease;
}

ChunkStore::Lease ChunkStore::find(const ChunkKey& key) {
  const std::scoped_lock lock(mutex_);
  const auto known = found_.find(key);
  if (known != found_.end() && slots_[known->second].is_filled) return hold_locked(known->second);
  ++figures_.misses;
  return {};
}

void ChunkStore::release(Lease& lease) noexcept {
  bool was_filled_now = false, was_dropped = false;
  {
    const std::scoped_lock lock(mutex_);
    Slot& slot = slots_[lease.slot_];
    --slot.leases;
    if (!slot.is_filled) {
      slot.is_filled = was_filled_now = lease.is_filled_;
      was_dropped = !slot.is_filled;
      figures_.chunks += slot.is_filled ? 1 : 0;
    }
    if (was_dropped) {
      found_.erase(slot.key);
      free_.push_back(lease.slot_);
    } else if (slot.leases == 0) {
      spare_.front() = lease.slot_;
      idle_.splice(idle_.end(), spare_, spare_.begin());
      slot.place = std::prev(idle_.end());
    }
  }
  if (was_filled_now || was_dropped) changed_.notify_all();
}

ChunkStore::Figures ChunkStore::figures() const {
  const std::scoped_lock lock(mutex_);
  Figures figures = figures_;
  figures.memory_bytes = arena_.size() + slots_.size() * kSlotBeside;
  return figures;
}

}  // namespace stoker::loader
