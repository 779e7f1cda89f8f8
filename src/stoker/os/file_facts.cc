#include "stoker/os/file_facts.h"

#include <cerrno>
#include <ctime>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "stoker/os/fault.h"

namespace stoker::os {
namespace {

std::int64_t ns_since_1970(const timespec& time) noexcept {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

FileKind kind_of_mode(mode_t mode) noexcept {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return FileKind::regular;
    case S_IFDIR:
      return FileKind::folder;
    case S_IFLNK:
      return FileKind::link;
    case S_IFIFO:
      return FileKind::pipe;
    case S_IFSOCK:
      return FileKind::socket;
    case S_IFCHR:
    case S_IFBLK:
      return FileKind::device;
    default:
      return FileKind::other;
  }
}

// `look(facts)` answers as stat() does.
template <typename Look>
FileFacts facts_by(Look&& look) noexcept {
  Fault fault;
  if (fault_now(Call::stat, fault) && fault.error_number != 0) return {.error_number = fault.error_number};
  struct stat facts;
  if (look(facts) != 0) return {.error_number = errno};
  return {.kind = kind_of_mode(facts.st_mode),
          .bytes = static_cast<std::uint64_t>(facts.st_size),
          .device = facts.st_dev,
          .inode = facts.st_ino,
          .modified_ns = ns_since_1970(facts.st_mtim),
          .changed_ns = ns_since_1970(facts.st_ctim)};
}

}  // namespace

FileFacts facts_of(int fd) noexcept {
  return facts_by([fd](struct stat& facts) { return ::fstat(fd, &facts); });
}

FileFacts facts_of(int directory, const char* path) noexcept {
  return facts_by([=](struct stat& facts) { return ::fstatat(directory, path, &facts, 0); });
}

FileFacts facts_of(const std::string& path) noexcept {
  return facts_of(AT_FDCWD, path.c_str());
}

bool can_reach(const std::string& path) noexcept {
  return facts_of(path).is_found();
}

bool has_entry(int directory, const char* path) noexcept {
  struct stat facts;
  return ::fstatat(directory, path, &facts, AT_SYMLINK_NOFOLLOW) == 0;
}

bool is_still_at(int fd, const std::string& path) noexcept {
  const FileFacts open = facts_of(fd), there = facts_of(path);
  return open.is_found() && there.is_found() && open.device == there.device && open.inode == there.inode;
}

std::optional<std::uint64_t> file_system_of(int fd) noexcept {
  struct statfs facts;
  if (::fstatfs(fd, &facts) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(facts.f_type);
}

}  // namespace stoker::os
