// The page cache as one file sees it: which of its pages are in memory, and dropping them. Needs no root. From any
// thread.
#pragma once

#include <cstdint>
#include <optional>

namespace stoker::os {

// Writes the file's dirty pages to the disk and drops all its pages. Only advice: pages that others map stay.
void drop_pages(int fd) noexcept;

struct CachedPages {
  std::uint64_t pages = 0;     // of the range
  std::uint64_t resident = 0;  // in memory
};
// Of the range of the file, as far as it has bytes. No pages where they cannot be counted. None where the kernel does
// not tell: since Linux 5.2 mincore() tells the truth only to the owner or a writer of the file.
std::optional<CachedPages> cached_pages(int fd, std::uint64_t offset, std::uint64_t bytes);

}  // namespace stoker::os
