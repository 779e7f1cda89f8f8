// Locks on single bytes of a file, between processes and between LockFile objects of one process. The kernel releases
// them when their owner ends, also by kill -9: nothing has to be cleaned up, whatever was locked.
// They are open-file-description locks (fcntl F_OFD_SETLK). A robust mutex in shared memory would do for short
// sections, but belongs to a thread, not to a process, does not survive a reboot of the file that it lies in, and means
// nothing between machines that share the file; a byte lock has none of these traps and costs about a microsecond.
// A LockFile may be used from many threads, but they share its locks: exclude them from each other by other means.
#pragma once

#include <cstdint>
#include <string>

#include "stoker/os/fd.h"

namespace stoker::os {

class LockFile {
 public:
  LockFile() noexcept = default;
  explicit LockFile(const std::string& path);  // makes the file if it is missing. Throws Error
  LockFile(LockFile&& other) noexcept;
  LockFile& operator=(LockFile&& other) noexcept;
  // A child made by fork() has no part in the locks of its parent: its copy of the descriptor is closed at the fork.
  ~LockFile();

  void lock(std::uint64_t byte);           // waits for it. Throws Error
  bool try_lock(std::uint64_t byte);       // false: another LockFile has it. Throws Error
  bool is_held(std::uint64_t byte) const;  // by another LockFile. Throws Error
  void unlock(std::uint64_t byte) noexcept;
  // Whether the path still leads to this file: somebody may have removed it, and others may use a new one.
  bool is_in_place() const noexcept;

 private:
  void let_go() noexcept;

  std::string path_;
  Fd fd_;
  std::uint64_t generation_ = 0;  // of forks, when it was opened
};

}  // namespace stoker::os
