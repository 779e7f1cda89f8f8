#include "stoker/os/memory.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>

#include <fcntl.h>
#include <unistd.h>

#include "stoker/os/cgroup.h"
#include "stoker/os/fd.h"

namespace stoker::os {
namespace {

std::uint64_t kib_after(const char* text, const char* key) noexcept {
  const char* const at = std::strstr(text, key);
  return at == nullptr ? 0 : std::strtoull(at + std::strlen(key), nullptr, 10) * 1024;
}

std::uint64_t host_bytes(const std::string& root) {
  const auto text = read_small_file(under(root, "proc/meminfo"));
  const std::uint64_t bytes = text ? kib_after(text->c_str(), "MemTotal:") : 0;
  if (bytes != 0) return bytes;
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// "max" is no number; the v1 "no limit" (2^63 rounded down to a page) is far above any host and so never the least.
std::optional<std::uint64_t> limit_in(const std::string& path) {
  const auto text = read_small_file(path);
  if (!text || text->empty() || (*text)[0] < '0' || (*text)[0] > '9') return std::nullopt;
  return std::strtoull(text->c_str(), nullptr, 10);
}

}  // namespace

MemoryLimit memory_limit(const std::string& root) {
  MemoryLimit limit{host_bytes(root), "host memory"};
  for (const Cgroup& group : cgroups(root, "memory")) {
    for (const std::string& folder : group.folders) {
      for (const char* file : {"/memory.max", "/memory.high", "/memory.limit_in_bytes"}) {
        const auto bytes = limit_in(under(root, folder + file));
        if (bytes && *bytes < limit.bytes) limit = {*bytes, folder + file};
      }
    }
  }
  return limit;
}

ProcessMemory process_memory() noexcept {
  int error_number = 0;
  const Fd fd = try_open(AT_FDCWD, "/proc/self/status", O_RDONLY, error_number);
  std::array<char, 8192> text{};
  if (!fd || read_some(fd.get(), std::as_writable_bytes(std::span(text).first(text.size() - 1)), 0) <= 0) return {};
  ProcessMemory memory;
  memory.anonymous_bytes = kib_after(text.data(), "RssAnon:");
  memory.shared_bytes = kib_after(text.data(), "RssShmem:");
  memory.file_bytes = kib_after(text.data(), "RssFile:");
  memory.peak_bytes = kib_after(text.data(), "VmHWM:");
  return memory;
}

}  // namespace stoker::os
