// The report of a measured job, and two runs side by side. Pure; from any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stoker/report/measured_job.h"
#include "stoker/report/report.h"
#include "stoker/tune/recorded_run.h"

namespace stoker::report {

Report from_measure(const MeasuredJob& job);
// A job on several nodes: what each of them wrote, in a folder of its own below `place`. The report is about the
// slowest rank, which waits most for its own loader: the others wait for it inside their steps. No clock is compared.
// Throws Error(usage) where the parts are not those of one job.
Report from_nodes(const std::vector<MeasuredJob>& nodes, const std::string& place);

// One side of a comparison.
struct Side {
  std::string label;
  Figure rate = {};
  std::optional<SplitBar> bar = {};
  std::string verdict = {}, settings = {};
  std::optional<double> host_bytes = {};
};

Side side_of(const MeasuredJob& job);
// The chosen point of a run; throws Error(usage) if nothing ran.
Side side_of(const tune::RecordedRun& run);
// The first is what the others are compared with.
Comparison compare(const std::vector<Side>& sides);

}  // namespace stoker::report
