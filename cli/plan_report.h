// A plan as text for people. Pure.
#pragma once

#include <string>
#include <vector>

#include "stoker/base/spell_text.h"
#include "stoker/plan/answer.h"

#include "terminal.h"

namespace stoker::cli {

// `spell` words the options that notes name; `written` are files that hold the plan.
std::string to_text(const plan::PlanAnswer& answer, const SpellText& spell, const Terminal& terminal,
                    const std::vector<std::string>& written);

}  // namespace stoker::cli
