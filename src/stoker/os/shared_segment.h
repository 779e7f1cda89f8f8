// Memory that processes of one user on this machine share: a memfd, found through a small file that lists who has it.
// The memory itself has no name: the kernel frees it when the last process that has it ends, also by kill -9, and its
// size does not depend on that of /dev/shm. Late processes open it through /proc/PID/fd of one that lives.
// Pages are allocated by reserve(), so that a lack of memory is a refusal and not a SIGBUS. Attaching and destroying
// belong to one thread; bytes() and reserve() are safe from any.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "stoker/os/fd.h"

namespace stoker::os {

class SharedSegment {
 public:
  struct Wish {
    std::string folder;            // where the list of processes lies; empty: shared_folder()
    std::uint64_t key = 0;         // of the job and of what the bytes are: equal keys share
    std::uint64_t head_bytes = 0;  // reserved at once
    std::uint64_t bytes = 0;       // with the head
    // How long to wait for the lock of the list, which a stopped process or a child made by fork() may keep.
    std::chrono::milliseconds patience{5000};
  };
  // Makes the segment, or finds the one that another process made. Waits while others attach. Null: `why` says
  // what is in the way.
  static std::unique_ptr<SharedSegment> attach(const Wish& wish, std::string& why);
  ~SharedSegment();  // in a child made by fork() the parent stays attached
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  // Zeros at first. Only what is reserved may be touched.
  std::span<std::byte> bytes() const noexcept { return {data_, size_}; }
  bool reserve(std::uint64_t offset, std::uint64_t bytes) const noexcept;  // false: there is no room

 private:
  SharedSegment() = default;
  bool map(Fd fd, std::uint64_t key, std::uint64_t bytes) noexcept;

  std::string path_;  // of the list
  std::chrono::milliseconds patience_{0};
  Fd fd_;
  std::uint64_t generation_ = 0;  // fork_generation() of the process that attached
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// The first of /dev/shm and /tmp that this process can write into; empty: neither.
std::string shared_folder();

}  // namespace stoker::os
