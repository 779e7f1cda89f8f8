// Reads mapped pages ahead of the thread that copies them, where they are not in memory: one page fault after another
// would wait for the disk each time. Where everything is in memory it costs two system calls per batch of reads.
// Belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stoker::storage {

class Prefault {
 public:
  // These bytes will be wanted; returns whether the disk was asked for them.
  bool ask(std::span<const std::byte> bytes) noexcept;
  // They are wanted now, and somebody else will touch them. `asked`: what ask() returned.
  void settle(std::span<const std::byte> bytes, bool asked) noexcept;

  // Around bytes being touched by this thread: whether that had to wait for the disk.
  void begin() noexcept;
  void end(bool all_asked) noexcept;

  bool is_cold() const noexcept { return cold_; }

 private:
  static constexpr std::uint32_t kProbe = 512;  // ask for this number, then skip one: is the rest in memory by now?

  bool cold_ = false;
  std::uint32_t asked_ = 0;
  std::int64_t faults_ = 0;
};

}  // namespace stoker::storage
