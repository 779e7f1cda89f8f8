#include "stoker/os/read_file.h"

#include <algorithm>
#include <span>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "stoker/base/error.h"
#include "stoker/base/units.h"
#include "stoker/os/fd.h"

namespace stoker::os {

std::vector<std::byte> read_file(std::string_view path, std::uint64_t limit_bytes) {
  const std::string name(path);
  const Fd fd = open_file(name, O_RDONLY | O_NOCTTY | O_NONBLOCK);  // a pipe is refused, not waited for
  std::uint64_t size = file_size(fd.get(), name);
  std::vector<std::byte> bytes;
  // Files of proc and sys say 0 bytes and have more, and any file may grow: read until the end says so.
  for (std::size_t got = 0;;) {
    if (size > limit_bytes || got > limit_bytes) {
      throw Error(ErrorKind::unavailable,
                  fmt::format("cannot read `{}`: it is larger than {}", name, format_bytes(limit_bytes)));
    }
    bytes.resize(std::max<std::size_t>(size + 1, got + 4096));
    const std::size_t more = read_up_to(fd.get(), std::span(bytes).subspan(got), got, name);
    const bool ended = more < bytes.size() - got;
    got += more;
    if (!ended) {
      size = got * 2;
      continue;
    }
    if (got > limit_bytes) continue;
    bytes.resize(got);
    return bytes;
  }
}

std::string read_text(std::string_view path, std::uint64_t limit_bytes) {
  const std::vector<std::byte> bytes = read_file(path, limit_bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool exists(const std::string& path) noexcept {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0;
}

}  // namespace stoker::os
