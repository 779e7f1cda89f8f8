#include "stoker/loader/sample_read.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/os/fd.h"

namespace stoker::loader {
namespace {

SampleBytes read_whole(int fd, Scratch& scratch) noexcept {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return {{}, errno};
  if (S_ISDIR(status.st_mode)) return {{}, EISDIR};
  const std::span<std::byte> into = scratch.take(static_cast<std::size_t>(status.st_size));
  if (into.size() != static_cast<std::size_t>(status.st_size)) return {{}, ENOMEM};
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::pread(fd, into.data() + done, into.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {{}, errno};
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return {into.first(done), 0};
}

}  // namespace

SampleBytes read_sample(const dataset::Dataset& dataset, std::uint64_t index, Scratch& scratch) noexcept {
  const dataset::Extent extent = dataset.extent(index);
  if (extent.source != nullptr) {
    const std::span<const std::byte> view = extent.source->view();
    if (!view.empty() && extent.offset + extent.bytes <= view.size())
      return {view.subspan(extent.offset, extent.bytes), 0};
    const std::span<std::byte> into = scratch.take(extent.bytes);
    if (into.size() != extent.bytes) return {{}, ENOMEM};
    try {
      const storage::Read read{extent.offset, into};
      extent.source->read({&read, 1});
    } catch (const std::exception&) {
      return {{}, EIO};
    }
    return {into, 0};
  }
  char path[4096];
  if (dataset.path(index, path) == 0) return {{}, ENAMETOOLONG};
  const os::Fd fd(::openat(dataset.directory(), path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return {{}, errno};
  return read_whole(fd.get(), scratch);
}

}  // namespace stoker::loader
