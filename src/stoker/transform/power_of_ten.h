// 10 to the power of x as torch computes it for tensors of float32. Pure; safe from any thread.
#pragma once

namespace stoker::transform {

// Of x in [-30, 30]. The edges of mel bands are differences of such powers: one unit in the last place is seen in them,
// and the correctly rounded power is another one in 1 to 2 percent of all x.
float power_of_ten(float x) noexcept;

}  // namespace stoker::transform
