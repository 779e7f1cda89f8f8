// Operations on the values of a view that lies in its slot, after everything else: float32, or uint16, which is
// computed in float32, rounded and clamped. Flips take every type. Pure; from any thread.
#pragma once

#include <cstddef>

#include "stoker/transform/action.h"
#include "stoker/transform/store.h"

namespace stoker::transform {

// Does an Act::shift_values, scale_values, gamma_values, noise_values, flip_x or flip_y.
void change_values(const Action& action, const StoreShape& shape, std::byte* slot) noexcept;

}  // namespace stoker::transform
