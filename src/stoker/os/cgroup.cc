#include "stoker/os/cgroup.h"

#include <algorithm>
#include <sstream>

#include <fcntl.h>
#include <sys/stat.h>

#include "stoker/os/fd.h"

namespace stoker::os {
namespace {

bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (list.substr(0, comma) == word) return true;
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return false;
}

bool is_folder(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

// The mount point of the hierarchy. A line of mountinfo: "36 25 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu".
std::string mount_point(const std::string& root, bool v2, std::string_view controller) {
  std::istringstream lines(read_small_file(under(root, "proc/self/mountinfo")).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream left(line.substr(0, dash)), right(line.substr(dash + 3));
    std::string skip, point, type, source, options;
    left >> skip >> skip >> skip >> skip >> point;
    right >> type >> source >> options;
    if (v2 ? type == "cgroup2" : type == "cgroup" && has_word(options, controller)) return point;
  }
  return v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + std::string(controller);
}

std::vector<std::string> levels(const std::string& root, const std::string& mount, std::string path) {
  std::vector<std::string> folders;
  for (;;) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    const std::string folder = path == "/" || path.empty() ? mount : mount + path;
    // Inside a container the mount often is the group itself, and the path named by proc is not below it.
    if (is_folder(under(root, folder))) folders.push_back(folder);
    if (path == "/" || path.empty()) return folders;
    path.resize(path.rfind('/') == 0 ? 1 : path.rfind('/'));
  }
}

}  // namespace

std::string under(const std::string& root, const std::string& path) {
  const std::size_t start = std::min(path.find_first_not_of('/'), path.size());
  return (root.ends_with('/') ? root : root + "/") + path.substr(start);
}

std::optional<std::string> read_small_file(const std::string& path) {
  int error_number = 0;
  const Fd fd = try_open(AT_FDCWD, path.c_str(), O_RDONLY, error_number);
  if (!fd) return std::nullopt;
  std::string text;
  std::byte part[4096];
  for (;;) {
    const std::int64_t got = read_some(fd.get(), part, text.size());
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    text.append(reinterpret_cast<const char*>(part), static_cast<std::size_t>(got));
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::vector<Cgroup> cgroups(const std::string& root, std::string_view controller) {
  std::vector<Cgroup> found;
  // A line of it: "4:cpu,cpuacct:/docker/abc" (v1) or "0::/user.slice" (v2).
  std::istringstream lines(read_small_file(under(root, "proc/self/cgroup")).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || second + 1 >= line.size() || line[second + 1] != '/') continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const bool v2 = names.empty();
    if (!v2 && !has_word(names, controller)) continue;
    found.push_back({v2, levels(root, mount_point(root, v2, controller), line.substr(second + 1))});
  }
  return found;
}

}  // namespace stoker::os
