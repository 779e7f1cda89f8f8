// What `stoker plan` wrote, put into a report: options, the plan, memory lines. Pure; from any thread.
#pragma once

#include <string>

#include "stoker/base/json.h"
#include "stoker/report/report.h"

namespace stoker::report {

// `file` is for messages. Throws Error(corrupt) where it is no plan.
void add_plan(const Json& plan, const std::string& file, Report& report);
// A report of a plan alone.
Report from_plan(const Json& plan, const std::string& file);

}  // namespace stoker::report
