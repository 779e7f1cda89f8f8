#include "stoker/os/file_limit.h"

#include <algorithm>

#include <sys/resource.h>

namespace stoker::os {

std::uint64_t open_file_limit() noexcept {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return kNoFileLimit;
  return files.rlim_cur;
}

std::uint64_t raise_open_file_limit(std::uint64_t wanted) noexcept {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return open_file_limit();
  if (files.rlim_cur != RLIM_INFINITY && files.rlim_cur < wanted) {
    files.rlim_cur = files.rlim_max == RLIM_INFINITY ? wanted : std::min<rlim_t>(wanted, files.rlim_max);
    (void)::setrlimit(RLIMIT_NOFILE, &files);
  }
  return open_file_limit();
}

}  // namespace stoker::os
