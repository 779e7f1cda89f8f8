#include "stoker/transform/distributions.h"

#include <cmath>
#include <numbers>

namespace stoker::transform {

// Box and Muller.
double normal_of(Random& random) noexcept {
  const double radius = std::sqrt(-2 * std::log((random.next() + 1.0) * 0x1p-32));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

// Marsaglia and Tsang (2000); below 1 by the gamma of alpha + 1.
double gamma_of(Random& random, double alpha) noexcept {
  if (alpha < 1) return gamma_of(random, alpha + 1) * std::pow((random.next() + 1.0) * 0x1p-32, 1 / alpha);
  const double d = alpha - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal_of(random), v = (1 + c * x) * (1 + c * x) * (1 + c * x);
    if (v <= 0) continue;
    const double u = (random.next() + 1.0) * 0x1p-32;
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

}  // namespace stoker::transform
