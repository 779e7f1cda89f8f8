// How much memory this process may use, and how much it uses.
#pragma once

#include <cstdint>
#include <string>

namespace stoker::os {

struct MemoryLimit {
  std::uint64_t bytes = 0;
  std::string limited_by;  // "host memory" or the cgroup file
};

// The least of the machine's memory and every cgroup limit (v1, v2) above this process. `root` as in effective_cores.
MemoryLimit memory_limit(const std::string& root = "/");

struct ProcessMemory {
  std::uint64_t anonymous_bytes = 0;  // RssAnon
  std::uint64_t shared_bytes = 0;     // RssShmem
  std::uint64_t file_bytes = 0;       // RssFile
  std::uint64_t peak_bytes = 0;       // VmHWM
};

ProcessMemory process_memory() noexcept;  // of this process; zeros where /proc is not there

}  // namespace stoker::os
