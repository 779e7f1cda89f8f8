#include "stoker/os/disk.h"

#include <cerrno>

#include <sys/statvfs.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/os/fault.h"

namespace stoker::os {

std::optional<std::uint64_t> free_bytes(const std::string& folder) noexcept {
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0) return std::nullopt;
  if (disk.f_blocks == 0) return std::nullopt;  // a file system that does not say, such as ramfs
  return std::uint64_t{disk.f_bavail} * disk.f_frsize;
}

void sync_file_system(int folder, std::string_view name) {
  Fault fault;
  if (fault_now(Call::fsync, fault) && fault.error_number != 0)
    throw system_error(fault.error_number, "write to the disk", name);
  if (::syncfs(folder) != 0) throw system_error(errno, "write to the disk", name);
}

}  // namespace stoker::os
