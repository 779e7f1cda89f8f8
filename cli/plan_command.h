// The command that tries one option of a plan. Pure.
#pragma once

#include <string>
#include <vector>

#include "stoker/plan/options.h"

#include "plan_input.h"

namespace stoker::cli {

// `flags` are those of `stoker load`. Where stoker cannot change the job's own command, the program needs an edit: a
// comment behind the command says which, and where.
plan::Command command_for(const PlanRun& run, const plan::Option& option, const std::vector<std::string>& flags);

}  // namespace stoker::cli
