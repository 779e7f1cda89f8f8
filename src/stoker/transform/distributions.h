// Random numbers that are not uniform, drawn from a stream. Pure; one thread each.
#pragma once

#include "stoker/base/random.h"

namespace stoker::transform {

// Of a normal distribution with mean 0 and standard deviation 1.
double normal_of(Random& random) noexcept;

// Numbers of a normal distribution, two at a time (Box and Muller).
class NormalNumbers {
 public:
  explicit NormalNumbers(std::uint64_t key) noexcept : random_(key, 0, 0) {}

  float next() noexcept;

 private:
  Random random_;
  float spare_ = 0;
  bool has_spare_ = false;
};

// Of a gamma distribution with shape `alpha`, which is above 0, and scale 1.
double gamma_of(Random& random, double alpha) noexcept;

}  // namespace stoker::transform
