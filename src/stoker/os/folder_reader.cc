#include "stoker/os/folder_reader.h"

#include <cerrno>
#include <cstdint>

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stoker/os/fault.h"

namespace stoker::os {
namespace {

struct DirectoryEntry {  // linux_dirent64: what getdents64 fills in
  std::uint64_t inode;
  std::int64_t next;
  unsigned short record_bytes;
  unsigned char type;
  char name[];
};

FileKind kind_of_entry(unsigned char type) noexcept {
  switch (type) {
    case DT_UNKNOWN:
      return FileKind::unknown;
    case DT_REG:
      return FileKind::regular;
    case DT_DIR:
      return FileKind::folder;
    case DT_LNK:
      return FileKind::link;
    case DT_FIFO:
      return FileKind::pipe;
    case DT_SOCK:
      return FileKind::socket;
    case DT_CHR:
    case DT_BLK:
      return FileKind::device;
    default:
      return FileKind::other;
  }
}

bool is_dots(const char* name) noexcept {
  return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

}  // namespace

bool FolderReader::fill() noexcept {
  for (;;) {
    Fault fault;
    const bool fails = fault_now(Call::read, fault) && fault.error_number != 0;
    const long got = fails ? -1 : ::syscall(SYS_getdents64, folder_, buffer_.data(), buffer_.size());
    if (got >= 0) {
      at_ = 0;
      filled_ = static_cast<std::size_t>(got);
      return got > 0;
    }
    error_number_ = fails ? fault.error_number : errno;
    if (error_number_ != EINTR) return false;
    error_number_ = 0;
  }
}

bool FolderReader::next(FolderEntry& entry) noexcept {
  while (at_ < filled_ || fill()) {
    const auto* const record = reinterpret_cast<const DirectoryEntry*>(buffer_.data() + at_);
    at_ += record->record_bytes;
    if (is_dots(record->name)) continue;
    entry = {record->name, kind_of_entry(record->type)};
    return true;
  }
  return false;
}

}  // namespace stoker::os
