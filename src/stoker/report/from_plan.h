// A plan put into a report: options, the plan, memory lines. Pure; from any thread.
#pragma once

#include <string>

#include "stoker/plan/answer.h"
#include "stoker/report/report.h"

namespace stoker::report {

// `file`: where the plan lies. The report shows the run whose folder that is; else the one that the plan would take.
void add_plan(const plan::PlanAnswer& plan, const std::string& file, Report& report);
// A report of a plan alone.
Report from_plan(const plan::PlanAnswer& plan, const std::string& file);

}  // namespace stoker::report
