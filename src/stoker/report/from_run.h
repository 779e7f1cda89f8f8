// The report of a tuning run, from its rows: ours, or what others measured. Pure; from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "stoker/report/report.h"
#include "stoker/tune/recorded_run.h"

namespace stoker::report {

Report from_run(const tune::RecordedRun& run);

// Trials whose steps the report shows: along the chosen curve. At most 8.
std::vector<std::uint64_t> trials_to_show(const tune::RecordedRun& run);

}  // namespace stoker::report
