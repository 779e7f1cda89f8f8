// Pillow's resize, row by row, of only the rows and columns that are kept: uint8 (modes L, LA, RGB, RGBA) and float32
// (mode F, per channel), bit for bit as Pillow 13 does. A pass along rows and one along columns; one that changes
// nothing is left out; filters widen where the image shrinks. Two channels are grey and alpha, four are colour and
// alpha: colour is weighted by alpha, as Pillow does. Memory comes from the Scratch and stays taken. One thread per
// Resizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "stoker/base/pixels.h"
#include "stoker/base/result.h"
#include "stoker/base/scratch.h"
#include "stoker/transform/ops.h"
#include "stoker/transform/weights.h"

namespace stoker::transform {

// An image of which only a rectangle is in memory: `data` is the pixel (x, y) of the image.
template <typename T>
struct Part {
  const T* data = nullptr;
  std::size_t stride = 0;  // elements from row to row
  std::int64_t x = 0, y = 0;
  std::uint32_t width = 0, height = 0;  // of the rectangle in memory
  std::uint32_t channels = 0;

  const T* at(std::int64_t column, std::int64_t row) const noexcept {
    return data + static_cast<std::size_t>(row - y) * stride + static_cast<std::size_t>(column - x) * channels;
  }
};

// A rectangle between pixels.
struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

// What becomes what: all of an in_width x in_height image becomes out_width x out_height, of which `keep` is wanted.
// `mirrored`: as if the image were flipped left to right before and after. `box`, where it has a size: not all of the
// image is resized but this, as Pillow's resize(box=); not mirrored, and not by the nearest pixel.
struct Resizing {
  std::uint32_t in_width = 0, in_height = 0, out_width = 0, out_height = 0;
  Filter filter = Filter::bilinear;
  bool mirrored = false;
  Rect keep;
  Box box{};

  Extent across() const noexcept { return box.width > 0 ? Extent(in_width, box.x, box.width) : Extent(in_width); }
  Extent down() const noexcept { return box.height > 0 ? Extent(in_height, box.y, box.height) : Extent(in_height); }
};

// Rounding lies between the passes, so their order shows in the pixels. Since Pillow 13 an image that loses more than
// twice as many rows as columns has the pass along columns first; earlier ones did so only above an aspect of 100.
bool columns_first(const Resizing& resizing) noexcept;

// The rectangle of the input that `keep` depends on.
Rect needed(const Resizing& resizing) noexcept;

template <typename T>
class Resizer {
 public:
  // `source` must hold needed(resizing) and outlive the rows. Runs all but a last pass along columns.
  Result prepare(const Part<T>& source, const Resizing& resizing, Scratch& scratch) noexcept;

  // Row `y` of `keep`, keep.width pixels; valid until the next call.
  const T* row(std::uint32_t y) noexcept;

 private:
  using Weight = std::conditional_t<std::is_same_v<T, std::uint8_t>, std::int32_t, double>;

  Part<T> from_;  // what the pass along columns reads, x relative to keep.x
  std::uint32_t elements_ = 0;
  std::uint32_t channels_ = 0;
  bool nearest_ = false, columns_ = false, alpha_ = false;
  Axis<Weight> vertical_;
  std::uint32_t* across_ = nullptr;  // nearest: source column per output column
  std::uint32_t* down_ = nullptr;
  std::uint32_t first_row_ = 0;
  T* line_ = nullptr;
  Weight* sums_ = nullptr;
};

extern template class Resizer<std::uint8_t>;
extern template class Resizer<float>;

// For tests: false makes every later call take the portable loops. Returns what was set before.
bool use_wide_kernels(bool wanted) noexcept;
bool wide_kernels() noexcept;  // the machine has AVX2, and nothing has switched it off

}  // namespace stoker::transform
