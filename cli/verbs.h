// The verbs of the program: one file each, each with its table of flags.
#pragma once

#include "flags.h"

namespace stoker::cli {

const Verb& check_verb();
const Verb& demo_verb();
const Verb& inspect_verb();
const Verb& load_verb();
const Verb& measure_verb();
const Verb& pack_verb();
const Verb& plan_verb();
const Verb& report_verb();
const Verb& stage_verb();
const Verb& tune_verb();

}  // namespace stoker::cli
