// The learning rate that another effective batch wants, by two rules of thumb. Pure arithmetic; from any thread.
#pragma once

#include <optional>
#include <string>

namespace stoker::plan {

struct ScaledRates {
  double linear = 0, square_root = 0;
};
// `times`: the new effective batch over the present one.
ScaledRates scaled_rates(double learning_rate, double times) noexcept;

// A sentence's worth: with the present rate the new ones, without it the factors. Says that they are rules of thumb.
std::string rate_text(std::optional<double> learning_rate, double times);

}  // namespace stoker::plan
