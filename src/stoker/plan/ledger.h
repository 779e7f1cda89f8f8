// A ledger as `stoker load --bench-steps N --json` or `stoker measure --json` printed it. Pure; from any thread.
#pragma once

#include <string>

#include "stoker/base/json.h"
#include "stoker/plan/input.h"

namespace stoker::plan {

// Takes the stages of `json` into `run`. `file` is for messages. Throws Error(corrupt).
void read_ledger(const Json& json, const std::string& file, PlanRun& run);
// A ledger alone, as a run of one row.
PlanRun run_of_ledger(const Json& json, const std::string& file);

}  // namespace stoker::plan
