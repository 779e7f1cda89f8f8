// The last step of an image: one row at a time, mirrored or not, through a table (uint8) or converted (float32), into
// the slot in its layout. Pure; from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "stoker/base/dtype.h"

namespace stoker::transform {

// How the float32 entries of a table of three channels can be computed instead of looked up, to the bit.
struct Scaling {
  bool exact = false;  // it was tried on all of them
  bool unit = false;   // divide by 255 first
  std::array<float, 3> mean{}, std{}, inverse_std{};
};

struct StoreShape {
  std::uint32_t width = 0, height = 0, channels = 0;
  bool planar = true;  // CHW in memory; else HWC
  DType dtype = DType::u8;
  Scaling scaling{};
};

// `mean` and `std` have three entries, or none. Not exact where this CPU's vectors cannot do it.
Scaling find_scaling(const float* table, bool unit, std::span<const float> mean, std::span<const float> std) noexcept;

// `table` is [channels][256] elements of shape.dtype; null stores the bytes as they are (dtype u8 only).
void store_row(const StoreShape& shape, const std::uint8_t* row, std::uint32_t y, bool flip, const void* table,
               std::byte* slot) noexcept;

// The whole image at once, from one plane per channel that lie one after another. `shape` is planar.
void store_planes(const StoreShape& shape, const std::uint8_t* planes, const void* table, std::byte* slot) noexcept;

// Converts to f32, f16, bf16, or u16 (rounded, and clamped to what fits).
void store_row(const StoreShape& shape, const float* row, std::uint32_t y, bool flip, std::byte* slot) noexcept;

// `count` float32 to f32, f16, bf16, i16 (times 32768) or u16 (rounded), in order.
void convert(const float* from, std::size_t count, DType dtype, std::byte* into) noexcept;

}  // namespace stoker::transform
