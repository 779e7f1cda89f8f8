#include "stoker/plan/learning_rate.h"

#include <cmath>

#include <fmt/format.h>

namespace stoker::plan {

ScaledRates scaled_rates(double learning_rate, double times) noexcept {
  return {learning_rate * times, learning_rate * std::sqrt(times)};
}

std::string rate_text(std::optional<double> learning_rate, double times) {
  const ScaledRates rates = scaled_rates(learning_rate.value_or(1), times);
  return learning_rate ? fmt::format(
                             "learning rate {:.3g} (linear) or {:.3g} (square root) instead of {:.3g}, by rules "
                             "of thumb",
                             rates.linear, rates.square_root, *learning_rate)
                       : fmt::format("learning rate times {:.3g} (linear) or {:.3g} (square root), by rules of thumb",
                                     rates.linear, rates.square_root);
}

}  // namespace stoker::plan
