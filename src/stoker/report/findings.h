// What the rows of a run say, in sentences. Pure; from any thread.
#pragma once

#include "stoker/report/report.h"
#include "stoker/report/run_view.h"

namespace stoker::report {

// Headline, tiles, outcome, failures, findings and the reasons of the choice.
void add_findings(const RunView& view, Report& report);

}  // namespace stoker::report
