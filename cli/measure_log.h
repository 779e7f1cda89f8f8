// stoker measure --log: what logs say, side by side. One thread.
#pragma once

#include <optional>
#include <string>

#include "stoker/base/json.h"
#include "stoker/measure/log.h"

#include "flags.h"
#include "terminal.h"

namespace stoker::cli {

int measure_logs(const Arguments& arguments, const Face& face);

std::optional<measure::LogPattern> log_pattern(const Arguments& arguments);  // none: not given. Throws Error(usage)
std::string log_line(const measure::LogFigure& figure);                      // "Disk I/O 11.5 s (median of 3)"
Json to_json(const measure::LogFacts& log);

}  // namespace stoker::cli
