#include "stoker/os/file_lock.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>

#include "stoker/os/file_facts.h"

namespace stoker::os {

FileLock FileLock::take(const std::string& path, int operation, int& error_number) noexcept {
  for (;;) {
    Fd fd = try_open(AT_FDCWD, path.c_str(), O_RDWR | O_CREAT, error_number);
    if (!fd) return {};
    if (::flock(fd.get(), operation) != 0) {
      if (errno == EINTR) continue;
      error_number = errno;
      return {};
    }
    // A holder that removes its file may have done so between our open and our flock.
    if (is_still_at(fd.get(), path)) return FileLock(std::move(fd));
  }
}

FileLock FileLock::try_take(const std::string& path, int& error_number) noexcept {
  return take(path, LOCK_EX | LOCK_NB, error_number);
}

FileLock FileLock::wait_for(const std::string& path, int& error_number) noexcept {
  return take(path, LOCK_EX, error_number);
}

}  // namespace stoker::os
