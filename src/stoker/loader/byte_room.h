// The encoded bytes in flight: one arena, cut into blocks. Its size is a hard limit. Safe from any thread.
//
// Blocks are taken in the order of the batches, and a batch that is refused comes next. So a batch that waits for room
// waits only for samples that come before: they end without it, the arena is then empty, and any block fits. That is
// why nothing can wait forever. Blocks are given back in any order, and what may happen to their room is the owner's
// choice:
//   anywhere  it is used again at once, so that one slow sample does not hold the room of those behind it;
//   in_order  it is used again once all blocks taken before are back. The used bytes are then one contiguous segment of
//   a
//             ring. A group of blocks fits if the arena holds their sum plus one more block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "stoker/os/arena.h"

namespace stoker::loader {

class ByteRoom {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::size_t kNoLimit = ~std::size_t{0};
  // The arena from end to end: used pieces, and free ones that never touch each other.
  struct Piece {
    std::size_t at = 0, bytes = 0;
    std::uint32_t before = kNone, after = kNone;             // neighbours in the arena
    std::uint32_t previous_free = kNone, next_free = kNone;  // of a free piece; in_order: next_free is the next taken
    bool free = false;
    bool returned = false;  // in_order: given back, and waits for those before it
  };

 public:
  enum class Reuse : std::uint8_t { anywhere, in_order };

  // Blocks begin at multiples of `align`, which divides 4096. At most `max_blocks` are out at a time.
  ByteRoom(std::size_t bytes, std::size_t max_blocks, Reuse reuse, std::size_t align = 4096);

  struct Block {
    std::byte* data = nullptr;  // null: no room now
    std::uint32_t piece = 0;
  };
  // `bytes` in one piece. Never more than capacity().
  Block take(std::size_t bytes);
  void give_back(const Block& block);

  std::size_t capacity() const noexcept { return arena_.size(); }
  bool is_empty() const;

  static constexpr std::size_t kBytesPerBlock = 2 * (sizeof(Piece) + sizeof(std::uint32_t));  // kept beside the arena

 private:
  std::uint32_t find(std::size_t need) const;
  void release(std::uint32_t piece);
  void add_free(std::uint32_t piece);
  void remove_free(std::uint32_t piece);
  void absorb(std::uint32_t piece, std::uint32_t next);

  const Reuse reuse_;
  const std::size_t align_;
  const std::size_t max_blocks_;
  os::Arena arena_;

  mutable std::mutex mutex_;
  std::vector<Piece> pieces_;
  std::vector<std::uint32_t> spare_;  // numbers of pieces that are not in use
  std::uint32_t first_free_ = kNone;  // the list of free pieces, the latest first
  std::size_t free_bytes_ = 0;
  std::size_t too_much_ = kNoLimit;  // no free piece is this large: asking again costs nothing
  std::size_t blocks_ = 0;
  std::uint32_t oldest_ = kNone, newest_ = kNone;  // in_order: the blocks that are out, as they were taken
  std::size_t head_ = 0;                           // in_order: where the newest block ends
};

}  // namespace stoker::loader
