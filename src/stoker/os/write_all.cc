#include "stoker/os/write_all.h"

#include <cerrno>

#include <unistd.h>

#include "stoker/os/fault.h"

namespace stoker::os {

int write_all(int fd, std::span<const std::byte> bytes) noexcept {
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
    const ssize_t written = ::write(fd, bytes.data(), limit);
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace stoker::os
