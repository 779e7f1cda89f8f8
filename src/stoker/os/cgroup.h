// Where the limits of this process's control groups are written: every level from its own group up to the mount, v1 and
// v2.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::os {

struct Cgroup {
  bool v2 = false;
  std::vector<std::string> folders;  // absolute (without `root`), own group first, existing ones only
};

// The hierarchies that may limit `controller` ("cpu", "cpuset", "memory"): at most one v1 and one v2.
std::vector<Cgroup> cgroups(const std::string& root, std::string_view controller);

// A small file of proc or sys without its last newline; nothing if it cannot be read.
std::optional<std::string> read_small_file(const std::string& path);
// "<root>/<path>" with exactly one slash between.
std::string under(const std::string& root, const std::string& path);

}  // namespace stoker::os
