#include "stoker/os/entry.h"

#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/os/fault.h"

namespace stoker::os {

Entry look_up(int directory, const char* path) noexcept {
  Entry entry;
  struct stat facts {};
  Fault fault;
  if (fault_now(Call::stat, fault) && fault.error_number != 0) {
    entry.error_number = fault.error_number;
  } else if (::fstatat(directory, path, &facts, 0) != 0) {
    entry.error_number = errno;
  }
  if (entry.error_number == ENOENT) {
    entry.error_number = 0;
    return entry;
  }
  entry.kind = entry.error_number != 0  ? Entry::Kind::unknown
               : S_ISREG(facts.st_mode) ? Entry::Kind::file
               : S_ISDIR(facts.st_mode) ? Entry::Kind::folder
                                        : Entry::Kind::other;
  entry.bytes = static_cast<std::uint64_t>(facts.st_size);
  entry.modified_ns = static_cast<std::int64_t>(facts.st_mtim.tv_sec) * 1'000'000'000 + facts.st_mtim.tv_nsec;
  return entry;
}

Entry look_up(const std::string& path) noexcept {
  return look_up(AT_FDCWD, path.c_str());
}

Fd lock_folder(const std::string& path) {
  Fd folder = open_file(path, O_RDONLY | O_DIRECTORY);
  while (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return {};
    break;
  }
  return folder;
}

}  // namespace stoker::os
