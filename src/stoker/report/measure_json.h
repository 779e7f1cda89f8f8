// measure.json and steps.csv of `stoker measure --out`, to their struct. From any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/report/measured_job.h"

namespace stoker::report {

// `place` is the folder, for messages. Throws Error(corrupt) that names the file and what is wrong with it.
MeasuredJob parse_measured_job(const Json& json, const std::string& place);
// The training steps of the first rank and loader that the text of steps.csv names. Throws Error(corrupt).
std::vector<MeasuredStep> parse_steps(std::string_view csv, const std::string& place);

// Both, from their files. Throws Error.
MeasuredJob read_measured_job(const std::string& folder);

}  // namespace stoker::report
