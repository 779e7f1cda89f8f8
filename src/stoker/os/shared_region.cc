#include "stoker/os/shared_region.h"

#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/base/round.h"
#include "stoker/base/units.h"
#include "stoker/os/fork.h"

namespace stoker::os {

SharedRegion::SharedRegion() : fd_(::memfd_create("stoker", MFD_CLOEXEC)), generation_(fork_generation()) {
  if (!fd_) throw system_error(errno, "make", "shared memory");
}

std::uint64_t SharedRegion::take(std::size_t bytes, std::size_t align) {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t offset = round_up(end_, align);
  if (::ftruncate(fd_.get(), static_cast<off_t>(offset + bytes)) != 0) {
    throw system_error(errno, "allocate", fmt::format("{} of shared memory", format_bytes(bytes)));
  }
  end_ = offset + bytes;
  return offset;
}

void SharedRegion::give_back(std::uint64_t offset, std::size_t bytes) noexcept {
  if (fork_generation() != generation_) return;
  (void)::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                    static_cast<off_t>(bytes));
}

}  // namespace stoker::os
