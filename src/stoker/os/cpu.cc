#include "stoker/os/cpu.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "stoker/os/cgroup.h"

namespace stoker::os {
namespace {

// "0-3,8" counts 5; anything else counts nothing.
std::optional<int> count_cpus(std::string_view list) {
  int count = 0;
  std::istringstream parts{std::string(list)};
  for (std::string part; std::getline(parts, part, ',');) {
    char* end = nullptr;
    const long first = std::strtol(part.c_str(), &end, 10);
    if (end == part.c_str()) return std::nullopt;
    const long last = *end == '-' ? std::strtol(end + 1, nullptr, 10) : first;
    if (first < 0 || last < first || last > 1 << 20) return std::nullopt;
    count += static_cast<int>(last - first + 1);
  }
  if (count == 0) return std::nullopt;
  return count;
}

std::optional<int> affinity(const std::string& root) {
  if (root == "/") {
    for (int cpus = 1024; cpus <= 1 << 18; cpus *= 2) {
      std::vector<cpu_set_t> set(CPU_ALLOC_SIZE(cpus) / sizeof(cpu_set_t) + 1);
      const std::size_t bytes = set.size() * sizeof(cpu_set_t);
      if (::sched_getaffinity(0, bytes, set.data()) == 0) return CPU_COUNT_S(bytes, set.data());
    }
    return std::nullopt;
  }
  std::istringstream lines(read_small_file(under(root, "proc/self/status")).value_or(""));
  constexpr std::string_view kKey = "Cpus_allowed_list:";
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kKey)) return count_cpus(line.substr(line.find_first_not_of(" \t", kKey.size())));
  }
  return std::nullopt;
}

int online_cpus(const std::string& root) {
  const auto listed = count_cpus(read_small_file(under(root, "sys/devices/system/cpu/online")).value_or(""));
  return listed.value_or(std::max<int>(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN))));
}

struct Limit {
  double cores = 0;
  std::string file;
};

std::optional<Limit> quota(const std::string& root, const std::string& folder, bool v2) {
  const std::string file = folder + (v2 ? "/cpu.max" : "/cpu.cfs_quota_us");
  const auto text = read_small_file(under(root, file));
  if (!text) return std::nullopt;
  double quota_us = 0, period_us = 100000;
  std::istringstream words(*text);
  if (!(words >> quota_us) || quota_us <= 0) return std::nullopt;  // "max", or -1
  if (v2) {
    words >> period_us;
  } else {
    std::istringstream(read_small_file(under(root, folder + "/cpu.cfs_period_us")).value_or("100000")) >> period_us;
  }
  if (!(period_us > 0)) return std::nullopt;
  return Limit{quota_us / period_us, file};
}

std::optional<Limit> cpuset(const std::string& root, const std::string& folder) {
  for (const char* file : {"/cpuset.cpus.effective", "/cpuset.effective_cpus", "/cpuset.cpus"}) {
    const auto count = count_cpus(read_small_file(under(root, folder + file)).value_or(""));
    if (count) return Limit{static_cast<double>(*count), folder + file};
  }
  return std::nullopt;
}

std::chrono::nanoseconds clock_time(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

Cores effective_cores(const std::string& root, int processes) {
  Cores cores;
  cores.online = online_cpus(root);
  cores.available = cores.online;
  for (const Cgroup& group : cgroups(root, "cpuset")) {
    for (const std::string& folder : group.folders) {
      const auto limit = cpuset(root, folder);
      if (limit && limit->cores < cores.available) {
        cores.available = limit->cores;
        cores.limited_by = fmt::format("cpuset ({})", limit->file);
      }
    }
  }
  double together = cores.available;  // of all processes
  // The kernel cuts the mask to the cpuset, so only a smaller mask is a limit of its own.
  if (const auto allowed = affinity(root); allowed && *allowed < cores.available) {
    cores.available = *allowed;
    cores.limited_by = "affinity";
  }
  for (const Cgroup& group : cgroups(root, "cpu")) {
    for (const std::string& folder : group.folders) {
      const auto limit = quota(root, folder, group.v2);
      if (limit) together = std::min(together, limit->cores);
      if (limit && limit->cores < cores.available) {
        cores.available = limit->cores;
        cores.limited_by = fmt::format("cgroup quota {:.4g} ({})", limit->cores, limit->file);
      }
    }
  }
  if (processes > 1 && together / processes < cores.available) {
    cores.available = together / processes;
    cores.limited_by = fmt::format("{} processes of this job on this machine", processes);
  }
  return cores;
}

std::optional<CoreTime> core_time(const std::string& root) {
  std::istringstream line(read_small_file(under(root, "proc/stat")).value_or(""));
  std::string name;
  std::uint64_t columns[8] = {};  // user, nice, system, idle, iowait, irq, softirq, steal
  if (!(line >> name) || name != "cpu") return std::nullopt;
  for (std::uint64_t& column : columns) {
    if (!(line >> column)) break;  // old kernels have fewer
  }
  const std::uint64_t tick_ns = 1'000'000'000ull / static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
  CoreTime time;
  time.busy = std::chrono::nanoseconds((columns[0] + columns[1] + columns[2]) * tick_ns);
  time.idle = std::chrono::nanoseconds((columns[3] + columns[4]) * tick_ns);
  for (const std::uint64_t column : columns) time.all += std::chrono::nanoseconds(column * tick_ns);
  return time;
}

std::optional<double> cores_of_others(const CoreTime& from, const CoreTime& to, std::chrono::nanoseconds own,
                                      double seconds, int online) {
  const double all = std::chrono::duration<double>(to.all - from.all).count();
  if (!(seconds > 0) || std::abs(all - online * seconds) > 0.3 * online * seconds) return std::nullopt;
  const double busy = std::chrono::duration<double>(to.busy - from.busy - own).count();
  return std::clamp(busy / seconds, 0.0, static_cast<double>(online));
}

std::chrono::nanoseconds process_cpu_time() noexcept {
  return clock_time(CLOCK_PROCESS_CPUTIME_ID);
}
std::chrono::nanoseconds children_cpu_time() noexcept {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}
std::chrono::nanoseconds thread_cpu_time() noexcept {
  return clock_time(CLOCK_THREAD_CPUTIME_ID);
}

}  // namespace stoker::os
