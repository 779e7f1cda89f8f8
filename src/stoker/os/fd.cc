#include "stoker/os/fd.h"

#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/os/fault.h"

namespace stoker::os {

int Fd::reset() noexcept {
  if (fd_ == kNone) return 0;
  Fault fault;
  const bool fails = fault_now(Call::close, fault);
  // Linux frees the descriptor whatever close() answers, also for EINTR: never repeat it.
  const int error_number = ::close(std::exchange(fd_, kNone)) == 0 ? 0 : errno;
  if (fails) return fault.error_number;
  return error_number == EINTR ? 0 : error_number;
}

Fd try_open(int directory, const char* path, int flags, int& error_number) noexcept {
  for (;;) {
    Fault fault;
    int fd = Fd::kNone;
    if (fault_now(Call::open, fault) && fault.error_number != 0) {
      error_number = fault.error_number;
    } else {
      fd = ::openat(directory, path, flags | O_CLOEXEC, 0666);
      error_number = fd < 0 ? errno : 0;
    }
    if (error_number != EINTR) return fd < 0 ? Fd() : Fd(fd);
  }
}

std::int64_t read_some(int fd, std::span<std::byte> into, std::uint64_t offset) noexcept {
  for (;;) {
    Fault fault;
    std::size_t bytes = into.size();
    if (fault_now(Call::read, fault)) {
      if (fault.error_number == EINTR) continue;
      if (fault.error_number != 0) return -fault.error_number;
      if (fault.short_bytes >= 0 && static_cast<std::size_t>(fault.short_bytes) < bytes) {
        bytes = static_cast<std::size_t>(fault.short_bytes);
      }
    }
    const std::int64_t got = read_once(fd, into.first(bytes), offset);
    if (got != -EINTR) return got;
  }
}

std::int64_t read_once(int fd, std::span<std::byte> into, std::uint64_t offset) noexcept {
  const ssize_t got = ::pread(fd, into.data(), into.size(), static_cast<off_t>(offset));
  return got >= 0 ? got : -errno;
}

std::int64_t file_size(int fd) noexcept {
  Fault fault;
  while (fault_now(Call::stat, fault)) {
    if (fault.error_number != EINTR && fault.error_number != 0) return -fault.error_number;
  }
  struct stat facts {};
  if (::fstat(fd, &facts) != 0) return -errno;
  if (S_ISDIR(facts.st_mode)) return -EISDIR;
  if (!S_ISREG(facts.st_mode)) return -ENOTSUP;
  return facts.st_size;
}

void close_from(int first) noexcept {
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, static_cast<unsigned>(first), ~0u, 0u) == 0) return;
#endif
  for (int fd = first; fd < 4096; ++fd) ::close(fd);  // before Linux 5.9
}

Fd open_file(const std::string& path, int flags) {
  int error_number = 0;
  Fd fd = try_open(AT_FDCWD, path.c_str(), flags, error_number);
  if (!fd) throw system_error(error_number, "open", path);
  return fd;
}

std::uint64_t file_size(int fd, std::string_view name) {
  const std::int64_t bytes = file_size(fd);
  if (bytes == -ENOTSUP) {
    throw Error(ErrorKind::unsupported, fmt::format("cannot read `{}`: not a regular file", name),
                "give a file or a folder of files, not a pipe, socket or device")
        .because("not a regular file");
  }
  if (bytes < 0) throw system_error(static_cast<int>(-bytes), "read", name);
  return static_cast<std::uint64_t>(bytes);
}

std::size_t read_up_to(int fd, std::span<std::byte> into, std::uint64_t offset, std::string_view name) {
  std::size_t done = 0;
  int tries_left = 100;  // of EAGAIN, which a regular file should never give
  while (done < into.size()) {
    const std::int64_t got = read_some(fd, into.subspan(done), offset + done);
    if (got == -EAGAIN && --tries_left > 0) continue;
    if (got < 0) throw system_error(static_cast<int>(-got), fmt::format("read at byte {} of", offset + done), name);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void read_exactly(int fd, std::span<std::byte> into, std::uint64_t offset, std::string_view name) {
  const std::size_t got = read_up_to(fd, into, offset, name);
  if (got == into.size()) return;
  throw Error(ErrorKind::corrupt,
              fmt::format("cannot read {} bytes at byte {} of `{}`: the file ends at byte {}", into.size(), offset,
                          name, offset + got),
              "the file is shorter than it was or should be: fetch or write it again");
}

void advise(int fd, Access access) noexcept {
  const int kernel_word = access == Access::at_random  ? POSIX_FADV_RANDOM
                          : access == Access::in_order ? POSIX_FADV_SEQUENTIAL
                                                       : POSIX_FADV_NORMAL;
  (void)::posix_fadvise(fd, 0, 0, kernel_word);
}

}  // namespace stoker::os
