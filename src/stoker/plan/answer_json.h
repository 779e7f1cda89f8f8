// A plan as JSON: plan.json, and the answer of `stoker plan --json`. Keys are only added; docs/reference/plan.md lists
// them. Pure; from any thread.
#pragma once

#include <string>

#include "stoker/base/json.h"
#include "stoker/base/spell_text.h"
#include "stoker/plan/answer.h"

namespace stoker::plan {

// `spell` words the options that notes name.
Json to_json(const PlanAnswer& answer, const SpellText& spell = &Text::in_python);
// A plan that was written before, with what plan.json has of it: of the input only names and limits. Keys that are
// missing, or are not what they should be, count as not known. `file` is for messages. Throws Error(corrupt) where it
// is no plan.
PlanAnswer parse_plan(const Json& json, const std::string& file);

}  // namespace stoker::plan
