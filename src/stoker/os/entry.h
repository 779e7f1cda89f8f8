// Entries of folders: what lies under a name, and locking it. From any thread.
#pragma once

#include <cstdint>
#include <string>

#include "stoker/os/fd.h"

namespace stoker::os {

struct Entry {
  enum class Kind : std::uint8_t { missing, file, folder, other, unknown };

  Kind kind = Kind::missing;
  std::uint64_t bytes = 0;       // of a file
  std::int64_t modified_ns = 0;  // since 1970
  int error_number = 0;          // of `unknown`: why it could not be looked up
};

// Follows links. `directory` is an open folder that `path` is below, or AT_FDCWD.
Entry look_up(int directory, const char* path) noexcept;
Entry look_up(const std::string& path) noexcept;

// The open folder `path`, locked for this process until the Fd closes; none: another process holds the lock. Throws
// Error where the folder cannot be opened. A file system without locks counts as locked.
Fd lock_folder(const std::string& path);

}  // namespace stoker::os
