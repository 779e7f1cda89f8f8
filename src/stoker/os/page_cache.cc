#include "stoker/os/page_cache.h"

#include <algorithm>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace stoker::os {

void drop_pages(int fd) noexcept {
  (void)::fdatasync(fd);  // dirty pages are not dropped
  (void)::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

std::optional<CachedPages> cached_pages(int fd, std::uint64_t offset, std::uint64_t bytes) {
  CachedPages found;
  struct stat facts {};
  if (::fstat(fd, &facts) != 0 || facts.st_size == 0) return found;
  if (facts.st_uid != ::geteuid() && ::geteuid() != 0) return std::nullopt;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)),
             size = static_cast<std::uint64_t>(facts.st_size);
  const std::uint64_t from = offset / page * page;
  if (from >= size) return found;
  const std::uint64_t length = std::min(offset + bytes, size) - from;
  void* const at = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(from));
  if (at == MAP_FAILED) return found;
  std::vector<unsigned char> map((length + page - 1) / page);
  if (::mincore(at, length, map.data()) == 0) {
    found.pages = map.size();
    found.resident = static_cast<std::uint64_t>(
        std::count_if(map.begin(), map.end(), [](unsigned char entry) { return (entry & 1) != 0; }));
  }
  ::munmap(at, length);
  return found;
}

}  // namespace stoker::os
