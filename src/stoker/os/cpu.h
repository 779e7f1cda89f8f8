// How many cores this process may really use, and who limits it: the affinity mask, the cpuset, or a cgroup quota (v1,
// v2).
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace stoker::os {

struct Cores {
  double available = 1;    // may be a fraction under a quota
  int online = 1;          // of the machine
  std::string limited_by;  // "", "affinity", "cgroup quota 1.5 (/sys/fs/cgroup/cpu.max)"

  int whole() const noexcept { return available < 1 ? 1 : static_cast<int>(available); }
};

// `root` is "/" but in tests, which give a made-up tree of proc and sys files.
// `processes`: of one job, which divide what the machine or their container has. A process that is bound to fewer cores
// than its share has those.
Cores effective_cores(const std::string& root = "/", int processes = 1);

// Of all cores of the machine together, since it started. None where /proc does not say.
struct CoreTime {
  std::chrono::nanoseconds busy{0};  // with programs and the kernel's work for them
  std::chrono::nanoseconds idle{0};  // also while a process waits for a disk
  std::chrono::nanoseconds all{0};   // also with interrupts, or taken by other guests of the host
};
std::optional<CoreTime> core_time(const std::string& root = "/");

// Cores that programs other than ours kept busy between two such readings, `seconds` apart, while ours used `own`.
// None where the readings cannot be right, as in sandboxes that only make them up.
std::optional<double> cores_of_others(const CoreTime& from, const CoreTime& to, std::chrono::nanoseconds own,
                                      double seconds, int online);

std::chrono::nanoseconds process_cpu_time() noexcept;   // user + system, all threads
std::chrono::nanoseconds children_cpu_time() noexcept;  // of those that have ended and were waited for, and theirs
std::chrono::nanoseconds thread_cpu_time() noexcept;

}  // namespace stoker::os
