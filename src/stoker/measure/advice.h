// From a verdict to sentences: why, what to change and where, and what the figures may hide. Pure functions.
#pragma once

#include "stoker/measure/answer.h"
#include "stoker/meter/stages.h"

namespace stoker::measure {

// Fills `why`, `advice` and `notes`.
void advise(Answer& answer, const Offer& offer);

// The loader's own figures and the machine's cores, for the model that predicts (stages.h).
meter::Stages stages_of(const LoaderAnswer& loader, const Offer& offer);

inline constexpr const char* kQuieterMachine =
    "a quieter machine, or fewer programs beside the job; then measure again";
// Whether other programs hold enough cores to slow the job, and the sentence that says so.
bool others_matter(const Offer& offer);
std::string others_text(const Offer& offer);
std::string percent_text(double share);  // "12 %"

}  // namespace stoker::measure
