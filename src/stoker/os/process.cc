#include "stoker/os/process.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "stoker/os/cgroup.h"

namespace stoker::os {
namespace {

std::string proc(const std::string& root, int pid, const char* file) {
  return under(root, fmt::format("proc/{}/{}", pid, file));
}

// The number after `key` in a text of lines "key: 123".
std::optional<std::uint64_t> number_after(const std::string& text, std::string_view key) {
  std::size_t at = 0;
  while ((at = text.find(key, at)) != std::string::npos) {
    if (at == 0 || text[at - 1] == '\n' || text[at - 1] == ' ') {
      at += key.size();
      while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
      std::uint64_t number = 0;
      const auto [after, code] = std::from_chars(text.data() + at, text.data() + text.size(), number);
      if (code == std::errc{}) return number;
      return std::nullopt;
    }
    ++at;
  }
  return std::nullopt;
}

// mountinfo writes a space as \040 and so on.
std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>(std::strtol(text.substr(i + 1, 3).c_str(), nullptr, 8));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::vector<int> process_tree(int pid, const std::string& root) {
  return process_trees({pid}, root);
}

std::vector<int> process_trees(std::vector<int> pids, const std::string& root) {
  std::vector<int> tree = std::move(pids);
  for (std::size_t i = 0; i < tree.size() && tree.size() < 4096; ++i) {
    std::error_code error;
    for (const auto& task : std::filesystem::directory_iterator(proc(root, tree[i], "task"), error)) {
      std::istringstream children(read_small_file((task.path() / "children").string()).value_or(""));
      for (int child = 0; children >> child;) {
        if (std::find(tree.begin(), tree.end(), child) == tree.end()) tree.push_back(child);
      }
    }
  }
  return tree;
}

std::optional<ProcessCounters> process_counters(int pid, const std::string& root) {
  const auto stat = read_small_file(proc(root, pid, "stat"));
  if (!stat) return std::nullopt;
  const std::size_t name_end = stat->rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat->substr(name_end + 1));
  ProcessCounters counters;
  std::string ignored;
  std::uint64_t user = 0, system = 0, children_user = 0, children_system = 0;
  fields >> counters.state;
  for (int i = 0; i < 10; ++i) fields >> ignored;
  if (!(fields >> user >> system)) return std::nullopt;
  fields >> children_user >> children_system;
  const std::uint64_t tick_ns = 1'000'000'000ull / static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
  counters.cpu = std::chrono::nanoseconds((user + system) * tick_ns);
  counters.children_cpu = std::chrono::nanoseconds((children_user + children_system) * tick_ns);
  if (const auto io = read_small_file(proc(root, pid, "io"))) {
    counters.read_bytes = number_after(*io, "read_bytes:");
    counters.read_chars = number_after(*io, "rchar:");
    counters.written_bytes = number_after(*io, "write_bytes:");
  }
  return counters;
}

std::vector<ThreadCounters> thread_counters(int pid, std::size_t most, const std::string& root) {
  std::vector<ThreadCounters> all;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(proc(root, pid, "task"), error)) {
    if (all.size() == most) break;
    const auto read = [&](const char* file) { return read_small_file((task.path() / file).string()); };
    const auto stat = read("stat");
    const std::size_t name_begin = stat ? stat->find('(') : std::string::npos;
    const std::size_t name_end = stat ? stat->rfind(')') : std::string::npos;
    if (name_begin == std::string::npos || name_end == std::string::npos || name_end + 2 >= stat->size()) continue;
    ThreadCounters thread;
    thread.thread = std::atoi(task.path().filename().c_str());
    thread.name = stat->substr(name_begin + 1, name_end - name_begin - 1);
    thread.state = (*stat)[name_end + 2];
    std::istringstream fields(read("schedstat").value_or(""));
    std::uint64_t ran = 0, delay = 0;
    if (fields >> ran >> delay)
      thread.cpu = std::chrono::nanoseconds(ran), thread.delay = std::chrono::nanoseconds(delay);
    if (const auto io = read("io")) thread.read_bytes = number_after(*io, "read_bytes:");
    all.push_back(std::move(thread));
  }
  return all;
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

std::optional<std::string> process_name(int pid, const std::string& root) {
  return read_small_file(proc(root, pid, "comm"));
}

std::optional<std::chrono::nanoseconds> process_run_delay(int pid, const std::string& root) {
  const auto text = read_small_file(proc(root, pid, "schedstat"));
  if (!text) return std::nullopt;
  std::istringstream fields(*text);
  std::uint64_t ran = 0, delay = 0;
  if (!(fields >> ran >> delay)) return std::nullopt;
  return std::chrono::nanoseconds(delay);
}

std::optional<std::uint64_t> process_resident_bytes(int pid, const std::string& root) {
  const auto text = read_small_file(proc(root, pid, "statm"));
  if (!text) return std::nullopt;
  std::istringstream fields(*text);
  std::uint64_t all = 0, resident = 0;
  if (!(fields >> all >> resident)) return std::nullopt;
  return resident * static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_PAGESIZE)));
}

std::optional<std::uint64_t> process_anonymous_bytes(int pid, const std::string& root) {
  std::istringstream fields(read_small_file(proc(root, pid, "statm")).value_or(""));
  std::uint64_t size = 0, resident = 0, shared = 0;
  if (!(fields >> size >> resident >> shared)) return std::nullopt;
  return (resident - std::min(resident, shared)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::optional<SharedMemory> process_shares(int pid, const std::string& root) {
  const auto text = read_small_file(proc(root, pid, "smaps_rollup"));
  if (!text) return std::nullopt;
  const auto pss = number_after(*text, "Pss:");
  if (!pss) return std::nullopt;
  return SharedMemory{.pss_bytes = *pss * 1024,
                      .uss_bytes = (number_after(*text, "Private_Clean:").value_or(0) +
                                    number_after(*text, "Private_Dirty:").value_or(0)) *
                                   1024};
}

std::vector<std::string> open_files(int pid, const std::string& root) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(proc(root, pid, "fd"), error)) {
    std::error_code unreadable;
    const std::string path = std::filesystem::read_symlink(entry.path(), unreadable).string();
    if (!unreadable && !path.empty() && path[0] == '/') paths.push_back(path);
  }
  return paths;
}

std::optional<std::uint64_t> open_descriptors(int pid, const std::string& root) {
  std::error_code error;
  std::filesystem::directory_iterator entries(proc(root, pid, "fd"), error);
  if (error) return std::nullopt;
  return static_cast<std::uint64_t>(std::distance(begin(entries), end(entries)));
}

std::optional<Mount> mount_under(const std::string& path, const std::string& root) {
  std::istringstream lines(read_small_file(under(root, "proc/self/mountinfo")).value_or(""));
  std::optional<Mount> best;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string skipped, point, word, type;
    for (int i = 0; i < 4; ++i) fields >> skipped;
    fields >> point;
    while (fields >> word && word != "-") {
    }
    if (!(fields >> type)) continue;
    point = unescaped(point);
    const bool inside = point == "/" || path == point || (path.starts_with(point) && path[point.size()] == '/');
    if (inside && (!best || point.size() >= best->point.size())) best = Mount{point, type};
  }
  return best;
}

std::optional<std::uint64_t> pressure_us(const std::string& resource, const std::string& root) {
  const auto text = read_small_file(under(root, "proc/pressure/" + resource));
  if (!text) return std::nullopt;
  return number_after(text->substr(0, text->find('\n')), "total=");
}

std::optional<Network> network_counters(const std::string& root) {
  const auto text = read_small_file(under(root, "proc/net/dev"));
  if (!text) return std::nullopt;
  Network network;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::istringstream name(line.substr(0, colon)), fields(line.substr(colon + 1));
    std::string interface, skipped;
    std::uint64_t received = 0, sent = 0;
    name >> interface;
    fields >> received;
    for (int i = 0; i < 7; ++i) fields >> skipped;
    if (interface == "lo" || !(fields >> sent)) continue;
    network.received_bytes += received;
    network.sent_bytes += sent;
  }
  return network;
}

std::optional<std::uint64_t> available_memory(const std::string& root) {
  const auto text = read_small_file(under(root, "proc/meminfo"));
  const auto kib = text ? number_after(*text, "MemAvailable:") : std::nullopt;
  return kib ? std::optional(*kib * 1024) : std::nullopt;
}

std::optional<std::string> boot_id(const std::string& root) {
  auto text = read_small_file(under(root, "proc/sys/kernel/random/boot_id"));
  while (text && text->ends_with('\n')) text->pop_back();
  return text && !text->empty() ? text : std::nullopt;
}

std::optional<Space> space_of(const std::string& path) {
  struct statvfs facts {};
  if (::statvfs(path.c_str(), &facts) != 0) return std::nullopt;
  return Space{.used_bytes = (facts.f_blocks - facts.f_bfree) * facts.f_frsize,
               .total_bytes = facts.f_blocks * facts.f_frsize,
               .free_bytes = facts.f_bavail * facts.f_frsize};
}

}  // namespace stoker::os
