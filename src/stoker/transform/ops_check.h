// What one operation must satisfy, whatever it is applied to. Shared by the two readers and the plan.
#pragma once

#include <string>
#include <string_view>

#include "stoker/base/dtype.h"
#include "stoker/base/text.h"
#include "stoker/transform/ops.h"

namespace stoker::transform {

std::string_view name(Filter filter) noexcept;  // "bilinear"
std::string_view name(const Op& op) noexcept;   // "RandomResizedCrop"

// Throws Error(usage) with one sentence.
void check_op(const Op& op);

// "cannot use transform `Window`: <cause>".
[[noreturn]] void refuse(const Op& op, const Text& cause, const Text& hint = {});

bool is_float(DType type) noexcept;  // one that operations give: float16, bfloat16 or float32

}  // namespace stoker::transform
