// A case described in a file: measured figures, as JSON of schema stoker.case/1. docs/reference/plan.md
// lists its keys. Pure; from any thread.
#pragma once

#include <string>
#include <string_view>

#include "stoker/plan/input.h"

namespace stoker::plan {

// `file` is the source and for messages. Throws Error(corrupt) that names the key.
PlanInput parse_case(std::string_view text, const std::string& file);

}  // namespace stoker::plan
