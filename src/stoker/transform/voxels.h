// Planes of a volume to the rows of a batch: mean and variance, and one fused pass that converts, normalizes, limits,
// mirrors and turns. Pure; from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "stoker/base/dtype.h"

namespace stoker::transform {

// One channel of one plane, where it lies.
struct VoxelPlane {
  const std::byte* first = nullptr;  // its first value
  std::uint64_t row_bytes = 0;       // from row to row
  std::uint32_t height = 0, width = 0;
  std::uint32_t channels = 1;  // values from one column to the next
  DType dtype = DType::u8;
  bool swap_bytes = false;  // each value is in the other byte order
};

// Of the values as they are stored.
struct Moments {
  std::uint64_t count = 0;
  double sum = 0, squares = 0;  // of (value - shift)
  double shift = 0;             // the first value, for reals and wide integers: keeps the variance exact

  double mean() const noexcept;       // 0 of nothing
  double deviation() const noexcept;  // of the population; 0 of nothing
};
void add_plane(const VoxelPlane& plane, Moments& moments) noexcept;

// What becomes of a value: (value - shift) * scale + offset, limited to [low, high]. NaN stays NaN.
// Values that a float holds are computed as floats; float64 and whole numbers of 32 and 64 bits as doubles.
struct Normalization {
  double shift = 0, scale = 1, offset = 0;
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
};

// How a plane is mirrored and turned: the value at (i, j) is that of (Y, X), or of (X, Y) where it is transposed, each
// counted from the end where it is mirrored.
struct PlaneTurn {
  bool transpose = false, mirror_rows = false, mirror_columns = false;  // of the plane as it is stored
};
// Mirrors the axes, then turns as numpy.rot90(plane, quarter_turns).
PlaneTurn plane_turn(bool flip_rows, bool flip_columns, std::uint32_t quarter_turns) noexcept;

// Writes height x width values: the plane, and zeros behind its rows and columns, all of it turned. A plane that is
// transposed needs height == width. `line` has room for the plane, before it is turned, where is_staged(); else it may
// be null. `past_cache`: the target is larger than caches, and nobody here reads it soon.
void write_plane(const VoxelPlane& plane, const Normalization& normalization, const PlaneTurn& turn,
                 std::uint32_t height, std::uint32_t width, float* to, float* line, bool past_cache) noexcept;
// The same as it is stored, in the machine's byte order.
void copy_plane(const VoxelPlane& plane, const PlaneTurn& turn, std::uint32_t height, std::uint32_t width,
                std::byte* to, std::byte* line) noexcept;
constexpr bool is_staged(const PlaneTurn& turn) noexcept {
  return turn.transpose;
}

}  // namespace stoker::transform
