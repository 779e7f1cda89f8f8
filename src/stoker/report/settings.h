// What was run and where, from the config and the subset of a run: facts, and the commands that run it again. Pure.
#pragma once

#include <string>
#include <vector>

#include "stoker/report/report.h"
#include "stoker/report/run_view.h"

namespace stoker::report {

// Title, context, configuration, environment, commands and links.
void describe(const RunView& view, Report& report);

// Words as one line of a shell.
std::string command_line(const std::vector<std::string>& words);

}  // namespace stoker::report
