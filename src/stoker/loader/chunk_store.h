// Decoded chunks of volumes, kept for the patches of this and later batches. As many as its share of memory_limit
// holds: the one that nobody has used for longest makes room for another. Safe from any thread.
//
// A thread holds one lease at a time. So a chunk that another thread is decoding is on its way for certain, and waiting
// for it cannot dead-lock.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stoker/loader/chunk_key.h"
#include "stoker/os/arena.h"

namespace stoker::loader {

class ChunkStore {
 public:
  // Chunks of at most `chunk_bytes` each. Throws Error(unavailable).
  ChunkStore(std::uint64_t limit_bytes, std::uint64_t chunk_bytes);
  ChunkStore(const ChunkStore&) = delete;
  ChunkStore& operator=(const ChunkStore&) = delete;

  // What keeping one chunk takes.
  static std::uint64_t bytes_for(std::uint64_t chunk_bytes) noexcept;

  // A chunk that stays where it is while the lease lives.
  class Lease {
   public:
    Lease() noexcept = default;
    Lease(Lease&& other) noexcept { swap(other); }
    Lease& operator=(Lease&& other) noexcept {
      Lease taken(std::move(other));
      swap(taken);
      return *this;
    }
    ~Lease() {
      if (store_ != nullptr) store_->release(*this);
    }

    std::byte* data() const noexcept { return data_; }  // null: there is no room for the chunk in the store
    bool is_filled() const noexcept { return is_filled_; }
    // The chunk is whole. Without this call it is forgotten, and the next thread that wants it decodes it.
    void fill() noexcept { is_filled_ = true; }

   private:
    friend class ChunkStore;
    void swap(Lease& other) noexcept {
      std::swap(store_, other.store_);
      std::swap(slot_, other.slot_);
      std::swap(data_, other.data_);
      std::swap(is_filled_, other.is_filled_);
    }
    ChunkStore* store_ = nullptr;
    std::size_t slot_ = 0;
    std::byte* data_ = nullptr;
    bool is_filled_ = false;
  };

  // The chunk, or room to decode it into. Waits where another thread decodes it.
  Lease lease(const ChunkKey& key);
  // The chunk where it is kept, else an empty lease: the caller takes what it needs of it from elsewhere.
  Lease find(const ChunkKey& key);
  bool has(const ChunkKey& key) const;  // or a thread is decoding it
  std::uint64_t capacity_bytes() const noexcept { return slots_.size() * slot_bytes_; }

  struct Figures {
    std::uint64_t chunks = 0, hits = 0, misses = 0, memory_bytes = 0;
  };
  Figures figures() const;

 private:
  struct Slot {
    ChunkKey key;
    std::uint32_t leases = 0;
    bool is_filled = false;
    std::list<std::size_t>::iterator place;  // among the idle ones, while it is filled and not leased
  };

  Lease hold_locked(std::size_t slot);
  void release(Lease& lease) noexcept;
  std::byte* address(std::size_t slot) const noexcept { return arena_.data() + slot * slot_bytes_; }

  const std::uint64_t slot_bytes_;
  os::Arena arena_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  std::list<std::size_t> idle_;   // filled and not leased; the first was not used for longest
  std::list<std::size_t> spare_;  // list nodes to move into idle_: a lease allocates nothing
  std::size_t next_slot_ = 0;     // slots from here on were never used
  std::vector<std::size_t> free_;
  std::unordered_map<ChunkKey, std::size_t, ChunkKey::Hash> found_;
  Figures figures_;
};

}  // namespace stoker::loader
