// Whole sources of a store that were read while a data set was opened, kept in memory until their samples are used for
// the first time: the first epoch does not fetch again what opening has read. Bounded in bytes. A source leaves when
// the bytes of its samples were handed out once, when storage=ram takes it over, or with shrink() and clear().
// Safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

#include "stoker/os/arena.h"
#include "stoker/storage/source.h"

namespace stoker::storage {

class HandOver {
 public:
  explicit HandOver(std::uint64_t limit_bytes) noexcept : limit_(limit_bytes) {}
  HandOver(const HandOver&) = delete;
  HandOver& operator=(const HandOver&) = delete;

  // Memory for a whole source. It counts against the limit until keep() or give_back() gets it. Empty: there is no
  // room.
  os::Arena take_room(std::uint64_t bytes) noexcept;
  void give_back(os::Arena room) noexcept;
  // `room` holds the whole source; `sample_bytes` of it are samples. The source must outlive what is kept of it.
  void keep(const Source& source, os::Arena room, std::uint64_t sample_bytes);

  // Copies the range that `into` is as long as. False: the source is not kept.
  bool copy(const Source& source, std::uint64_t offset, std::span<std::byte> into) const;
  // The same, and counts samples that are used: their source leaves once the bytes of all its samples were.
  // `first_used`: bytes of samples in the range that are used for the first time.
  bool hand_out(const Source& source, std::uint64_t offset, std::span<std::byte> into, std::uint64_t first_used);

  os::Arena take(const Source& source);   // the whole of it. Empty: it is not kept, or being copied
  void shrink(std::uint64_t most_bytes);  // some sources leave
  void clear() { shrink(0); }
  std::uint64_t held_bytes() const noexcept;  // with what take_room() gave

 private:
  struct Kept {
    std::shared_ptr<os::Arena> bytes;  // shared with those who copy from it
    std::uint64_t sample_bytes_left = 0;
  };
  static bool copy_from(const std::shared_ptr<os::Arena>& bytes, std::uint64_t offset, std::span<std::byte> into);

  const std::uint64_t limit_;
  mutable std::mutex mutex_;
  std::unordered_map<const Source*, Kept> kept_;
  std::uint64_t held_ = 0;
};

}  // namespace stoker::storage
