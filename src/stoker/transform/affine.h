// Turning, shearing, shifting and distorting planes, with the arithmetic of Pillow's Image.transform and Image.rotate,
// to the bit: bytes as in modes L and RGB, floats as in mode F. Pure; from any thread.
#pragma once

#include <array>
#include <cstdint>

#include "stoker/base/result.h"
#include "stoker/transform/action.h"
#include "stoker/transform/planes.h"

namespace stoker::transform {

// Where in the source the pixels of the result lie: x = a[0] * x + a[1] * y + a[2], y = a[3] * x + a[4] * y + a[5].
using AffineMatrix = std::array<double, 6>;
// The same over (a[6] * x + a[7] * y + 1).
using PerspectiveMatrix = std::array<double, 8>;

// torchvision's _get_inverse_affine_matrix of the figures of an Act::affine.
AffineMatrix affine_matrix(const std::array<double, 8>& figures) noexcept;
// torchvision's _get_perspective_coeffs, rounded to float32, of the figures of an Act::perspective.
PerspectiveMatrix perspective_matrix(const std::array<double, 8>& figures, std::uint32_t width,
                                     std::uint32_t height) noexcept;

// Image.rotate(degrees, expand=...): what is done to an image of that size.
struct Rotation {
  std::uint32_t quarters = 0;  // counter-clockwise, where Pillow only moves pixels; 4: a matrix instead
  AffineMatrix matrix{};
  std::uint32_t width = 0, height = 0;  // that leave
};
Rotation rotation_of(const std::array<double, 8>& figures, std::uint32_t width, std::uint32_t height) noexcept;

// Does an Act::rotate, affine, matrix or perspective, whose filter and fill it takes, and turns the canvas. False: it
// is another action. E is std::uint8_t or float.
template <typename E>
bool warp(CanvasOf<E>& canvas, const Action& action, Scratch& scratch, Result& result) noexcept;

}  // namespace stoker::transform
