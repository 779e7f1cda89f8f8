// RandomErasing on a view that lies in its slot, after the change to float. Pure; from any thread.
#pragma once

#include <cstddef>

#include "stoker/transform/action.h"
#include "stoker/transform/store.h"

namespace stoker::transform {

// Does an Act::erase: every element of the rectangle becomes the value of its channel, or noise from a normal
// distribution.
void erase(const Action& action, const StoreShape& shape, std::byte* slot) noexcept;

}  // namespace stoker::transform
