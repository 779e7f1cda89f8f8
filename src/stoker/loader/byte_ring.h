// The encoded bytes in flight: one arena used round and round. Blocks are taken in order and given back in any order;
// room comes back when the oldest block is. Taking in the order of the batches is what makes it free of deadlock:
// whoever waits for room waits only for samples that come before. Safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "stoker/os/arena.h"

namespace stoker::loader {

class ByteRing {
 public:
  // Blocks begin at multiples of `align`, which divides 4096.
  ByteRing(std::size_t bytes, std::size_t max_blocks, std::size_t align = 4096);

  struct Block {
    std::byte* data = nullptr;  // null: no room now
    std::uint64_t ticket = 0;
  };
  // `bytes` in one piece. Never more than capacity().
  Block take(std::size_t bytes);
  void give_back(const Block& block);

  std::size_t capacity() const noexcept { return arena_.size(); }
  bool is_empty() const;

 private:
  struct Entry {
    std::size_t end = 0;  // where the block ends
    bool free = false;
  };
  mutable std::mutex mutex_;
  const std::size_t align_;
  os::Arena arena_;
  std::vector<Entry> entries_;          // ring of blocks, by ticket % size
  std::uint64_t first_ = 0, next_ = 0;  // tickets of the oldest block and of the next one
  std::size_t head_ = 0, tail_ = 0;     // next free byte; first byte in use
};

}  // namespace stoker::loader
