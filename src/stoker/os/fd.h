// A file descriptor that closes itself, and the few reads and opens the engine needs. Interrupted calls are repeated.
// A descriptor may be read from many threads at once; the Fd object itself belongs to one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace stoker::os {

class Fd {
 public:
  static constexpr int kNone = -1;

  Fd() noexcept = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, kNone)) {}
  Fd& operator=(Fd other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { reset(); }

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ != kNone; }
  int release() noexcept { return std::exchange(fd_, kNone); }
  int reset() noexcept;  // closes; 0 or the error number (writers care, readers do not)

 private:
  int fd_ = kNone;
};

// These report with values and never throw: a result below 0 is a negated error number.
Fd try_open(int directory, const char* path, int flags, int& error_number) noexcept;  // O_CLOEXEC is added
std::int64_t read_some(int fd, std::span<std::byte> into, std::uint64_t offset) noexcept;
// One pread(), repeated never, and no failure on purpose: for readers that handle both themselves.
std::int64_t read_once(int fd, std::span<std::byte> into, std::uint64_t offset) noexcept;
std::int64_t file_size(int fd) noexcept;  // of a regular file; -EISDIR for a folder, -ENOTSUP for anything else

// Closes every descriptor from `first` on: for a child process that keeps nothing of its parent open.
void close_from(int first) noexcept;

// These throw Error, naming `name`.
Fd open_file(const std::string& path, int flags);
// How the file will be read, so that the kernel reads ahead or does not. Only advice.
enum class Access : std::uint8_t { normal, in_order, at_random };
void advise(int fd, Access access) noexcept;
std::uint64_t file_size(int fd, std::string_view name);
// Reads until `into` is full or the file ends; returns how many bytes.
std::size_t read_up_to(int fd, std::span<std::byte> into, std::uint64_t offset, std::string_view name);
// Fills `into`; an end of file before that is Error(corrupt).
void read_exactly(int fd, std::span<std::byte> into, std::uint64_t offset, std::string_view name);

}  // namespace stoker::os
