// A file that grows only at its end: a journal, a table of results. A crash leaves a prefix of what was appended.
// Belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "stoker/os/fd.h"

namespace stoker::os {

class AppendFile {
 public:
  static constexpr std::uint64_t kEverything = ~std::uint64_t{0};

  AppendFile() noexcept = default;
  // Opens `path`, or makes it, and keeps its first `keep_bytes`. All of these throw Error, naming `path`.
  explicit AppendFile(std::string path, std::uint64_t keep_bytes = kEverything);

  void append(std::span<const std::byte> bytes);
  void append(std::string_view text);
  void sync();  // everything that was appended is on the disk when it returns

 private:
  void check(int error_number, const char* operation) const;

  std::string path_;
  Fd fd_;
};

}  // namespace stoker::os
