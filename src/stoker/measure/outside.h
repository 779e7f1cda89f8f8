// What can be told of a job that runs already, without touching it: from its processes, the machine and its log. Pure
// functions; from any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stoker/measure/host.h"
#include "stoker/measure/log.h"

namespace stoker::measure {

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
