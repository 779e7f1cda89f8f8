// A plan as text for people. Pure.
#pragma once

#include <string>
#include <vector>

#include "stoker/plan/answer.h"

#include "terminal.h"

namespace stoker::cli {

std::string to_text(const plan::PlanAnswer& answer, const Terminal& terminal, const std::vector<std::string>& written);

}  // namespace stoker::cli
