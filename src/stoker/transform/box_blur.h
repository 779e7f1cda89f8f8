// Pillow's ImageFilter.GaussianBlur, to the bit: three box blurs along each axis, whose ends count in part. Pure; from
// any thread.
#pragma once

#include "stoker/transform/planes.h"

namespace stoker::transform {

// `radius` is the deviation in pixels, above 0. Turns the canvas.
void box_blur(Canvas& canvas, double radius) noexcept;

}  // namespace stoker::transform
