// How sure a mean is: of blocks of correlated steps, and of few runs. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace stoker::meter {

// Quantiles of Student's t: 90, 95 and 97.5 % of it lie below. `degrees` of freedom, from 1.
double t90(double degrees) noexcept;
double t95(double degrees) noexcept;
double t975(double degrees) noexcept;

// Half the width of the 95 % interval of the mean of `values` (Student's t). None for fewer than 4.
std::optional<double> half_width(std::span<const double> values) noexcept;

// How many steps make a block: at least `queued` (what lies finished between workers and consumer, so that one block's
// burst is not the next one's wait), a whole number of rounds over the workers, at most 30 blocks.
std::size_t block_steps(std::size_t steps, std::size_t queued, std::size_t workers) noexcept;

}  // namespace stoker::meter
