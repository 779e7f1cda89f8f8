// The two renderings of a plan: text for people, and plan.json (its keys are in docs/planning.md). Pure.
#pragma once

#include <string>
#include <vector>

#include "stoker/base/json.h"

#include "plan_answer.h"
#include "terminal.h"

namespace stoker::cli {

std::string to_text(const PlanAnswer& answer, const Terminal& terminal, const std::vector<std::string>& written);
Json to_json(const PlanAnswer& answer);

}  // namespace stoker::cli
