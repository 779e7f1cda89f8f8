// Reads the names in an open folder, in the order of the file system, many in one system call. Belongs to one thread,
// and so does the position of the descriptor.
#pragma once

#include <cstddef>
#include <span>

#include "stoker/os/file_facts.h"

namespace stoker::os {

struct FolderEntry {
  const char* name = nullptr;  // until the next call
  FileKind kind =
      FileKind::unknown;  // of the entry itself: a link is a link; unknown where the file system does not say
};

class FolderReader {
 public:
  // `buffer` is the caller's, so that it can serve many folders; 128 KiB hold some 4,000 names.
  FolderReader(int folder, std::span<std::byte> buffer) noexcept : folder_(folder), buffer_(buffer) {}

  // The next entry but `.` and `..`. False: there are no more, or error_number() says why they cannot be read.
  bool next(FolderEntry& entry) noexcept;
  int error_number() const noexcept { return error_number_; }

 private:
  bool fill() noexcept;

  int folder_;
  std::span<std::byte> buffer_;
  std::size_t at_ = 0, filled_ = 0;
  int error_number_ = 0;
};

}  // namespace stoker::os
