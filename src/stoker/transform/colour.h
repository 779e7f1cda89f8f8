// Colour operations on 8-bit planes, in place, to the bit as Pillow does them (ImageEnhance, convert, ImageOps). Pure;
// from any thread.
#pragma once

#include <array>
#include <cstdint>

#include "stoker/transform/planes.h"

namespace stoker::transform {

// What a byte becomes, one table per channel.
using ByteTable = std::array<std::uint8_t, 256>;
struct ByteTables {
  std::array<ByteTable, 4> of{};
  bool is_used = false;  // false: nothing changes

  // Adds `table` for channel c, behind what is there.
  void add(std::uint32_t c, const ByteTable& table) noexcept;
};
void apply_tables(const ByteTables& tables, const Planes& image) noexcept;

// ImageEnhance: `degenerate` and the image, mixed with `factor`; below 0 and above 1 it extrapolates and clips.
ByteTable blend_table(std::uint8_t degenerate, double factor) noexcept;
ByteTable posterize_table(std::uint32_t bits) noexcept;
ByteTable solarize_table(double threshold) noexcept;
ByteTable solarize_add_table(std::uint32_t added) noexcept;  // to values below 128
ByteTable invert_table() noexcept;

// int(mean + 0.5) of the gray image, which is what ImageEnhance.Contrast mixes with. 1 or 3 channels.
std::uint8_t mean_gray(const Planes& image) noexcept;

// Three channels. `factor` 0 gives gray.
void saturate(const Planes& image, double factor) noexcept;
// Three channels: through Pillow's HSV, whose hue is turned by int(turn * 255) of 256 steps.
void turn_hue(const Planes& image, double turn) noexcept;
// Three channels: the first becomes convert("L"), and the others too where `all` is set.
void make_gray(const Planes& image, bool all) noexcept;

// As Image.blend(degenerate, image, factor), into `image`. Same shapes.
void blend(const Planes& degenerate, const Planes& image, double factor) noexcept;

}  // namespace stoker::transform
