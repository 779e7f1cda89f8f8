// 16-bit images: from stored words to resized float32 rows. Each output row is the weighted sum of the source rows it
// depends on, levelled as they are read, and then resized along its columns; nothing else is kept. Weights are
// Pillow's, sums are float32 in a fixed order: the same bits with and without vectors, within a few ulp of Pillow's
// mode F (whose sums are double). Memory comes from the Scratch and stays taken. One thread per DeepResizer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "stoker/base/result.h"
#include "stoker/base/scratch.h"
#include "stoker/transform/resize.h"
#include "stoker/transform/weights.h"

namespace stoker::transform {

// What becomes of a stored word: itself, its share of 65535, or its place in a window, clamped to [0, 1].
struct Levels {
  enum class What : std::uint8_t { as_stored, share, window } what = What::as_stored;
  float shift = 0, scale = 1;  // of the window: (v - shift) * scale
};

// A 16-bit image of which only a rectangle is in memory: `data` is the pixel (x, y), at any alignment.
struct DeepPart {
  const std::byte* data = nullptr;
  std::size_t stride_bytes = 0;
  std::int64_t x = 0, y = 0;
  std::uint32_t channels = 0;

  const std::byte* at(std::int64_t column, std::int64_t row) const noexcept {
    return data + static_cast<std::size_t>(row - y) * stride_bytes +
           static_cast<std::size_t>(column - x) * channels * sizeof(std::uint16_t);
  }
};

void level_row(const std::byte* words, std::size_t count, const Levels& levels, float* into) noexcept;

// The two last steps of a row that is float already. `into` may be `from`.
void window_row(const float* from, std::size_t count, float shift, float scale, float* into) noexcept;
void normalize_row(const float* from, std::size_t count, const float* mean, const float* std, float* into) noexcept;

// Where one element of an output row finds its taps in the summed row, and its weights.
struct ElementTaps {
  std::uint32_t begin = 0, weights = 0;
};

class DeepResizer {
 public:
  // `source` must hold needed(resizing) and outlive the rows.
  Result prepare(const DeepPart& source, const Levels& levels, const Resizing& resizing, Scratch& scratch) noexcept;

  // Row `y` of `keep`, keep.width pixels; valid until the next call.
  const float* row(std::uint32_t y) noexcept;

 private:
  Result prepare_nearest(Scratch& scratch) noexcept;
  bool prepare_across(Scratch& scratch) noexcept;
  bool prepare_down(Scratch& scratch) noexcept;

  DeepPart source_;
  Levels levels_;
  Resizing resizing_;
  Rect need_;
  std::size_t in_elements_ = 0, out_elements_ = 0;  // of a row

  Resizer<float> nearest_;  // for that filter alone

  Axis<float> vertical_, horizontal_;  // count 0: as many rows, or columns, as before
  const std::byte** tops_ = nullptr;   // source rows that one output row takes
  ElementTaps* elements_ = nullptr;    // of an output row, up to whole vectors
  std::uint32_t quads_ = 0;            // of taps, at most, per element
  float* summed_ = nullptr;            // the pass down columns
  float* line_ = nullptr;              // the pass along rows
};

}  // namespace stoker::transform
