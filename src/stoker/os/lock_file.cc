#include "stoker/os/lock_file.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/os/fault.h"
#include "stoker/os/fork.h"

namespace stoker::os {
namespace {

// The descriptors that a forked child closes first of all. One that finds no place here stays open in children: its
// locks then end with the last of them.
constexpr std::size_t kRemembered = 64;
std::array<std::atomic<int>, kRemembered> lock_descriptors;  // the number + 1; 0: free

void close_in_child() {
  for (std::atomic<int>& one : lock_descriptors) {
    if (const int number = one.exchange(0, std::memory_order_relaxed); number > 0) ::close(number - 1);
  }
}

void remember(int fd) noexcept {
  static const int registered = ::pthread_atfork(nullptr, nullptr, close_in_child);
  (void)registered;
  for (std::atomic<int>& one : lock_descriptors) {
    int free = 0;
    if (one.compare_exchange_strong(free, fd + 1)) return;
  }
}

void forget(int fd) noexcept {
  for (std::atomic<int>& one : lock_descriptors) {
    int mine = fd + 1;
    if (one.compare_exchange_strong(mine, 0)) return;
  }
}

struct flock one_byte(short kind, std::uint64_t byte) {
  struct flock range {};
  range.l_type = kind;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(byte);
  range.l_len = 1;
  return range;
}

// 0 or the error number.
int control(int fd, int command, struct flock& range) noexcept {
  for (;;) {
    Fault fault;
    if (fault_now(Call::lock, fault) && fault.error_number != 0) {
      if (fault.error_number == EINTR) continue;
      return fault.error_number;
    }
    if (::fcntl(fd, command, &range) == 0) return 0;
    if (errno != EINTR) return errno;
  }
}

}  // namespace

LockFile::LockFile(const std::string& path)
    : path_(path), fd_(open_file(path, O_RDWR | O_CREAT)), generation_(fork_generation()) {
  remember(fd_.get());
}

LockFile::LockFile(LockFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::move(other.fd_)), generation_(other.generation_) {}

LockFile& LockFile::operator=(LockFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(generation_, other.generation_);
  return *this;
}

LockFile::~LockFile() {
  let_go();
}

void LockFile::let_go() noexcept {
  if (!fd_) return;
  if (generation_ != fork_generation()) {
    (void)fd_.release();  // closed at the fork; the number may be another file's by now
    return;
  }
  forget(fd_.get());
}

void LockFile::lock(std::uint64_t byte) {
  struct flock range = one_byte(F_WRLCK, byte);
  if (const int error_number = control(fd_.get(), F_OFD_SETLKW, range); error_number != 0) {
    throw system_error(error_number, "lock", path_);
  }
}

bool LockFile::try_lock(std::uint64_t byte) {
  struct flock range = one_byte(F_WRLCK, byte);
  const int error_number = control(fd_.get(), F_OFD_SETLK, range);
  if (error_number == EAGAIN || error_number == EACCES) return false;
  if (error_number != 0) throw system_error(error_number, "lock", path_);
  return true;
}

bool LockFile::is_held(std::uint64_t byte) const {
  struct flock range = one_byte(F_WRLCK, byte);
  const int error_number = control(fd_.get(), F_OFD_GETLK, range);
  if (error_number != 0) throw system_error(error_number, "look at the locks of", path_);
  return range.l_type != F_UNLCK;
}

void LockFile::unlock(std::uint64_t byte) noexcept {
  struct flock range = one_byte(F_UNLCK, byte);
  while (::fcntl(fd_.get(), F_OFD_SETLK, &range) != 0 && errno == EINTR) {
  }
}

bool LockFile::is_in_place() const noexcept {
  struct stat here {
  }, there{};
  return ::fstat(fd_.get(), &here) == 0 && ::stat(path_.c_str(), &there) == 0 && here.st_dev == there.st_dev &&
         here.st_ino == there.st_ino;
}

}  // namespace stoker::os
