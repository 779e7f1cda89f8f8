// What `stoker plan` plans from, read from the places that people name. One thread.
#pragma once

#include <string>

#include "stoker/plan/input.h"

namespace stoker::cli {

// A folder of `stoker tune`, or a results.csv. Throws Error.
plan::PlanRun read_run(const std::string& path, const tune::ColumnMap& columns);

}  // namespace stoker::cli
