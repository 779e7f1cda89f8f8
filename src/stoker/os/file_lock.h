// A lock between processes: one at a time holds it (flock). The kernel gives it back when its holder ends, also by
// kill -9, so a lock file that was left behind has no effect. Belongs to one thread.
#pragma once

#include <string>
#include <utility>

#include "stoker/os/fd.h"

namespace stoker::os {

class FileLock {
 public:
  FileLock() noexcept = default;

  // Locks the file `path`, and makes it if it is missing. Not locked: `error_number` says why; EWOULDBLOCK means that
  // another process holds the lock.
  static FileLock try_take(const std::string& path, int& error_number) noexcept;
  static FileLock wait_for(const std::string& path, int& error_number) noexcept;

  explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
  void release() noexcept { fd_.reset(); }

 private:
  explicit FileLock(Fd fd) noexcept : fd_(std::move(fd)) {}
  static FileLock take(const std::string& path, int operation, int& error_number) noexcept;

  Fd fd_;
};

}  // namespace stoker::os
