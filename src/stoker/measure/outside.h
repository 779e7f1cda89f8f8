// What can be told of a job that runs already, without touching it: from its processes, the machine and its log. Pure
// functions, but for reading the log.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stoker/measure/host.h"

namespace stoker::measure {

struct LogFacts {
  std::string path;
  std::optional<double> step_s;      // from the last "1.43s/it" or "2.1it/s"
  std::uint64_t seen_steps = 0;      // how many such there were
  std::vector<std::string> trouble;  // the last lines about memory that ran out or workers that died
};

// The last 256 KiB of the log. Throws Error where it cannot be read.
LogFacts read_log(const std::string& path);
LogFacts parse_log(std::string_view text);

struct OutsideAnswer {
  std::string headline;
  std::vector<std::string> why, advice, notes;
  std::size_t workers = 0;
  double worker_cpu = 0, worker_delay = 0, worker_disk_wait = 0;  // shares of their time
};

// Marks the workers among `facts.processes` (by the name that torch gives them, else the children named as the job).
void mark_workers(HostFacts& facts, int pid);
OutsideAnswer outside_answer(const HostFacts& facts, const std::optional<LogFacts>& log);

}  // namespace stoker::measure
