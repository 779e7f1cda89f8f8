// A run to plan from, read from the place that people name. From any thread.
#pragma once

#include <string>

#include "stoker/plan/input.h"

namespace stoker::plan {

// A folder of `stoker tune`, or a table of rows; and what the data of our own loader is, where it is still there.
// Throws Error.
PlanRun read_run(const std::string& path, const tune::ColumnMap& columns = {});

}  // namespace stoker::plan
