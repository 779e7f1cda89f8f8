// What one operation must satisfy by itself, whatever it is applied to. Shared by the two readers and the plan.
#pragma once

#include <string_view>

#include "stoker/transform/ops.h"

namespace stoker::transform {

std::string_view name(Filter filter) noexcept;  // "bilinear"
std::string_view name(const Op& op) noexcept;   // "RandomResizedCrop"

// Throws Error(usage) with one sentence.
void check_op(const Op& op);

}  // namespace stoker::transform
