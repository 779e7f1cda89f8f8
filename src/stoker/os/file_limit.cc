#include "stoker/os/file_limit.h"

#include <sys/resource.h>

namespace stoker::os {

std::uint64_t open_file_limit() noexcept {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return kNoFileLimit;
  return files.rlim_cur;
}

}  // namespace stoker::os
