// Memory that other processes of the same program may map: one descriptor, from which ranges are taken and given back.
// A process that inherits the descriptor maps a range by its offset. Offsets are never used twice, so that a range that
// was given back cannot be mistaken for a later one. Safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "stoker/os/fd.h"

namespace stoker::os {

class SharedRegion {
 public:
  SharedRegion();  // throws Error(unavailable)
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  int fd() const noexcept { return fd_.get(); }  // close-on-exec

  // The offset of a range of zeros that begins at a multiple of `align`, a power of two of whole pages. Takes no memory
  // until it is touched. Throws Error(unavailable).
  std::uint64_t take(std::size_t bytes, std::size_t align);
  // The memory goes back to the system at once, in every process that still has the range mapped. Does nothing in a
  // child made by fork(): the range is its parent's.
  void give_back(std::uint64_t offset, std::size_t bytes) noexcept;

 private:
  Fd fd_;
  std::mutex mutex_;
  std::uint64_t end_ = 0;
  std::uint64_t generation_;
};

}  // namespace stoker::os
