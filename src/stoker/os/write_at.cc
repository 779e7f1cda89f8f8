#include "stoker/os/write_at.h"

#include <algorithm>
#include <cerrno>

#include <unistd.h>

#include "stoker/os/fault.h"

namespace stoker::os {

std::int64_t write_some_at(int fd, std::span<const std::byte> bytes, std::uint64_t offset) noexcept {
  for (;;) {
    Fault fault;
    if (fault_now(Call::write, fault)) {
      if (fault.error_number == EINTR) continue;
      if (fault.error_number != 0) return -fault.error_number;
    }
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written >= 0) return fault.short_bytes < 0 ? written : std::min<std::int64_t>(written, fault.short_bytes);
    if (errno != EINTR) return -errno;
  }
}

int set_file_size(int fd, std::uint64_t bytes) noexcept {
  while (::ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace stoker::os
