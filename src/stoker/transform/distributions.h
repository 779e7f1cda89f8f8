// Random numbers that are not uniform, drawn from a stream. Pure; one thread each.
#pragma once

#include "stoker/base/random.h"

namespace stoker::transform {

// Of a normal distribution with mean 0 and standard deviation 1; normal_numbers.h has many at a time.
double normal_of(Random& random) noexcept;

// Of a gamma distribution with shape `alpha`, which is above 0, and scale 1.
double gamma_of(Random& random, double alpha) noexcept;

}  // namespace stoker::transform
