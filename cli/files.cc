#include "files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/dataset/read_sample.h"
#include "stoker/os/fd.h"

namespace stoker::cli {
namespace {

// The file that holds sample `index`: its own, or the one its source reads; none for what lies in a store. Inflated
// copies repeat files: skip is up to the caller. O_NONBLOCK: a pipe that took a file's place must not be waited for.
int open_holder(const dataset::Dataset& dataset, std::uint64_t index) {
  std::array<char, storage::kLocationText> text;
  const storage::Location where = dataset.locate(index, text);
  if (where.source) return ::fcntl(where.source->descriptor(), F_DUPFD_CLOEXEC, 0);
  if (where.name == nullptr || !where.is_file()) {
    errno = where.is_file() ? ENAMETOOLONG : ENOTSUP;
    return -1;
  }
  return ::openat(where.directory, where.name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

}  // namespace

bool exists(const std::string& path) {
  struct stat status;
  return ::lstat(path.c_str(), &status) == 0;
}

void require_free(const std::string& path, bool force, std::string_view flag) {
  if (force || !exists(path)) return;
  throw Error(ErrorKind::usage, fmt::format("`{}` would overwrite `{}`", flag, path),
              "choose another name, or add --force");
}

std::string read_text(const std::string& path) {
  const std::vector<std::byte> bytes = storage::read_file(path, std::uint64_t{1} << 26);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string read_sample(const dataset::Dataset& dataset, std::uint64_t index, std::vector<std::byte>& bytes) {
  return dataset::read_sample(dataset, index, bytes).failure.text;
}

void drop_from_page_cache(const dataset::Dataset& dataset, const std::function<bool(std::uint64_t)>& keep_going) {
  std::set<const storage::Source*> seen;
  for (std::uint64_t i = 0; i < dataset.size(); ++i) {
    if (i % 256 == 0 && !keep_going(i)) throw Error(ErrorKind::unavailable, "interrupted");
    const storage::Location extent = dataset.location(i);
    if (extent.source && !seen.insert(extent.source).second) continue;
    const os::Fd file(open_holder(dataset, i));
    if (!file) continue;      // the loader will name it
    ::fdatasync(file.get());  // dirty pages are not dropped
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

double cached_share(const dataset::Dataset& dataset) {
  constexpr std::uint64_t kFiles = 200;
  constexpr std::uint64_t kBytes = std::uint64_t{64} << 20;  // of each file, at most
  const std::uint64_t page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t stride = std::max<std::uint64_t>(1, dataset.size() / kFiles);
  std::uint64_t pages = 0, resident = 0;
  std::vector<unsigned char> map;
  for (std::uint64_t i = 0; i < dataset.size(); i += stride) {
    const storage::Location extent = dataset.location(i);
    const os::Fd file(open_holder(dataset, i));
    struct stat status;
    if (!file || ::fstat(file.get(), &status) != 0 || status.st_size == 0) continue;
    // Since Linux 5.2 mincore tells the truth only to the owner or a writer of the file.
    if (status.st_uid != ::geteuid() && ::geteuid() != 0) return -1;
    const std::uint64_t from = extent.offset / page * page;
    const std::uint64_t wanted =
        extent.source ? extent.offset + extent.bytes - from : static_cast<std::uint64_t>(status.st_size);
    const std::uint64_t length = std::min({wanted, kBytes, static_cast<std::uint64_t>(status.st_size) - from});
    void* const at = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, file.get(), static_cast<off_t>(from));
    if (at == MAP_FAILED) continue;
    map.assign((length + page - 1) / page, 0);
    if (::mincore(at, length, map.data()) == 0) {
      pages += map.size();
      for (const unsigned char entry : map) resident += entry & 1;
    }
    ::munmap(at, length);
  }
  return pages == 0 ? -1 : static_cast<double>(resident) / static_cast<double>(pages);
}

}  // namespace stoker::cli
