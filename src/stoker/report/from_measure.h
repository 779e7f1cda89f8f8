// The report of a measured job, from the measure.json and steps.csv of `stoker measure --out`; and two runs side by
// side. Pure; from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/report/from_run.h"
#include "stoker/report/report.h"

namespace stoker::report {

struct MeasuredJob {
  std::string place;  // the folder, as commands name it
  Json answer = nullptr;
  std::string steps_csv = {};  // its text; empty: there is none
  std::vector<std::string> files = {};
};

// Throws Error(corrupt) naming the file and what is wrong with it.
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
