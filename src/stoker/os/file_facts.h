// What the system knows of a file: kind, size, identity and times. From any thread; nothing here throws.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stoker::os {

enum class FileKind : std::uint8_t { unknown, regular, folder, link, pipe, socket, device, other };

struct FileFacts {
  int error_number = 0;  // why the look-up failed; the other fields then say nothing
  FileKind kind = FileKind::unknown;
  std::uint64_t bytes = 0;
  std::uint64_t device = 0, inode = 0;  // both together identify the file, whatever its path is
  std::int64_t modified_ns = 0;         // since 1970: when its bytes were last written
  std::int64_t changed_ns = 0;          // since 1970: when its bytes, owner, mode or names last changed

  bool is_found() const noexcept { return error_number == 0; }
};

FileFacts facts_of(int fd) noexcept;
// These follow links. `directory` is an open folder that `path` starts from, or AT_FDCWD.
FileFacts facts_of(int directory, const char* path) noexcept;
FileFacts facts_of(const std::string& path) noexcept;

// `path` leads to something. Unlike exists() it follows links, so a link that leads nowhere is false.
bool can_reach(const std::string& path) noexcept;

// Something has this name in the open folder, if only a link that leads nowhere.
bool has_entry(int directory, const char* path) noexcept;

// The open file has this path at the moment.
bool is_still_at(int fd, const std::string& path) noexcept;

// The number of the file system's kind, as statfs(2) lists them; none where the system does not tell.
std::optional<std::uint64_t> file_system_of(int fd) noexcept;

}  // namespace stoker::os
