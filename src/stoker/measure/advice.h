// From a verdict to sentences: why, what to change and where, and what the figures may hide. Pure functions.
#pragma once

#include "stoker/measure/answer.h"

namespace stoker::measure {

// Fills `why`, `advice` and `notes`.
void advise(Answer& answer, const Offer& offer);

// What `workers` instead of the present number would give, by the workers' own time per batch: how many times faster.
double predicted_gain(const LoaderAnswer& loader, double workers, double cores);
// The fewest workers whose prediction is within 2 % of the best, up to four per core where they mostly wait.
int suggested_workers(const LoaderAnswer& loader, double cores);

}  // namespace stoker::measure
