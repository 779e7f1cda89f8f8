// Pixels added around planes, and a rectangle kept of the result, in one pass. Pure; from any thread.
#pragma once

#include "stoker/base/result.h"
#include "stoker/transform/action.h"
#include "stoker/transform/planes.h"

namespace stoker::transform {

// Does an Act::pad_crop as torchvision's pad (ImageOps.expand or numpy.pad) and crop do. What lies outside the padded
// image is 0. `reflect` cannot add more than a side minus 1. E is std::uint8_t or float.
template <typename E>
Result pad_and_crop(CanvasOf<E>& canvas, const Action& action) noexcept;

}  // namespace stoker::transform
