// Filters over a neighbourhood of 8-bit planes. Pure; from any thread.
#pragma once

#include <cstdint>

#include "stoker/base/result.h"
#include "stoker/transform/planes.h"

namespace stoker::transform {

// torchvision's gaussian_blur: a convolution in float32 with float32 weights, reflected at the borders, rounded halves
// to even. torchvision sums the products of the whole kernel, here rows are summed after columns: where the exact sum
// lies within 1e-4 of a half, the two may round to neighbours. Sizes are odd, and at most twice a side minus 1.
Result gaussian_blur(Canvas& canvas, std::uint32_t kernel_width, std::uint32_t kernel_height, double sigma,
                     Scratch& scratch) noexcept;
std::uint64_t blur_bytes(std::uint32_t width, std::uint32_t kernel_width, std::uint32_t kernel_height) noexcept;

// ImageEnhance.Sharpness: the image and filter(SMOOTH) of it, mixed with `factor`, to the bit.
void sharpen(Canvas& canvas, double factor) noexcept;

}  // namespace stoker::transform
