#include "stoker/os/write_all.h"

#include <cerrno>

#include <unistd.h>

#include "stoker/os/fault.h"

namespace stoker::os {
namespace {

// `write(rest, limit)` writes the first `limit` bytes of what is left, or fewer.
template <typename Write>
int write_all_by(std::span<const std::byte> bytes, Write&& write) noexcept {
  while (!bytes.empty()) {
    Fault fault;
    std::size_t limit = bytes.size();
    if (fault_now(Call::write, fault)) {
      if (fault.error_number == EINTR) continue;
      if (fault.error_number != 0) return fault.error_number;
      if (fault.short_bytes >= 0 && static_cast<std::size_t>(fault.short_bytes) < limit) {
        limit = static_cast<std::size_t>(fault.short_bytes);
      }
    }
    const ssize_t written = write(bytes, limit);
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

int write_all(int fd, std::span<const std::byte> bytes) noexcept {
  return write_all_by(
      bytes, [fd](std::span<const std::byte> rest, std::size_t limit) { return ::write(fd, rest.data(), limit); });
}

int write_all_at(int fd, std::span<const std::byte> bytes, std::uint64_t offset) noexcept {
  const std::size_t total = bytes.size();
  return write_all_by(bytes, [=](std::span<const std::byte> rest, std::size_t limit) {
    return ::pwrite(fd, rest.data(), limit, static_cast<off_t>(offset + (total - rest.size())));
  });
}

}  // namespace stoker::os
