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
