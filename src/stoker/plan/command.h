// The command that tries one option of a plan. Pure; from any thread.
#pragma once

#include <string>
#include <vector>

#include "stoker/plan/input.h"
#include "stoker/plan/options.h"

namespace stoker::plan {

// `flags` are those of `stoker load`. Where stoker cannot change the job's own command, the program needs an edit: a
// comment behind the command says which, and where.
Command command_for(const PlanRun& run, const Option& option, const std::vector<std::string>& flags);

}  // namespace stoker::plan
