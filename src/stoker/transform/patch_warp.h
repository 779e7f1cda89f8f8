// Mirroring, turning and resampling one channel of a patch, whose axes are z, y and x. Pure; from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "stoker/transform/volume_ops.h"

namespace stoker::transform {

using PatchEdges = std::array<std::uint32_t, 3>;

// Flips and quarter turns that follow one another: axis a of the result runs along axis from[a], from its end where it
// is mirrored.
struct AxisTurn {
  std::array<std::uint8_t, 3> from{0, 1, 2};
  std::array<bool, 3> mirrored{};

  void flip(std::size_t axis) noexcept { mirrored[axis] = !mirrored[axis]; }
  void rotate(std::size_t first, std::size_t second, std::uint32_t quarters) noexcept;  // numpy.rot90
  bool changes_nothing() const noexcept;
};
// Axes that are exchanged have the same length. `element` is the size of a value: 1, 2, 4 or 8.
void turn_patch(const std::byte* from, const PatchEdges& edges, std::size_t element, const AxisTurn& turn,
                std::byte* to) noexcept;

// What MONAI's AffineGrid multiplies, in its order: rotations around z, y and x, shears, shifts, scales.
struct PatchAffine {
  std::array<double, 3> rotate{};
  std::array<double, 6> shear{};
  std::array<double, 3> translate{};
  std::array<double, 3> scale{1, 1, 1};
};
// Rows of z, y and x: where a voxel of the result comes from, both counted from the middle of the patch.
using PatchMatrix = std::array<std::array<double, 4>, 3>;
PatchMatrix matrix_of(const PatchAffine& affine) noexcept;

// As MONAI's Resample, which is torch's grid_sample(align_corners=False). Floats are interpolated; of values of any
// type the nearest one is taken, which is rounded to even where two are as near.
void resample_linear(const float* from, const PatchEdges& edges, const PatchMatrix& matrix, Beyond beyond,
                     float* to) noexcept;
void resample_nearest(const std::byte* from, const PatchEdges& edges, std::size_t element, const PatchMatrix& matrix,
                      Beyond beyond, std::byte* to) noexcept;

}  // namespace stoker::transform
