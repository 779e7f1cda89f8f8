// 16-bit pictures: from stored words to resized float32 rows. The values are those of a Resizer<float> over the whole
// picture as float32, bit for bit; with AVX2 each source row is read, levelled and resized along its columns once,
// four rows at a time, and only the rows that the next output row needs are kept. Memory comes from the Scratch and
// stays taken. One thread per DeepResizer.
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

// A 16-bit picture of which only a rectangle is in memory: `data` is the pixel (x, y), at any alignment.
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

// Where one element of an output row finds its taps among four rows that lie side by side, and its weights.
struct ElementTaps {
  std::uint32_t begin = 0, weights = 0;
};

class DeepResizer {
 public:
  // `source` must hold needed(resizing) and outlive the rows.
  Result prepare(const DeepPart& source, const Levels& levels, const Resizing& resizing, Scratch& scratch) noexcept;

  // Row `y` of `keep`, keep.width pixels; valid until the next call. Rows are asked for in order.
  const float* row(std::uint32_t y) noexcept;

 private:
  // The last rows of a pass, by their number modulo the capacity.
  struct Ring {
    float* data = nullptr;
    std::size_t stride = 0;
    std::uint32_t capacity = 0;

    float* at(std::uint32_t row) const noexcept { return data + (row % capacity) * stride; }
  };

  bool prepare_wide(Scratch& scratch) noexcept;
  const float* wide_row(std::uint32_t y) noexcept;
  void across(float* const (&into)[4]) noexcept;  // the pass along rows, from quad_
  // Rows of the source, levelled and resized along the rows, into the ring: all before `end`, and up to three more.
  void fill_across(std::uint32_t end) noexcept;
  void prefetch_rows(std::uint32_t first) const noexcept;
  // When columns come first: the next four lines.
  void fill_lines() noexcept;
  // The pass down columns for output row `y`, from rows of the ring.
  void sum_rows(std::uint32_t y, std::size_t count, float* into) noexcept;

  DeepPart source_;
  Levels levels_;
  Resizing resizing_;
  Rect need_;
  std::size_t in_elements_ = 0, out_elements_ = 0, out_stride_ = 0;  // of a row

  bool wide_ = false;
  Resizer<float> plain_;  // else

  bool columns_ = false, columns_first_ = false;
  Axis<double> horizontal_, vertical_;
  std::uint32_t taps_ = 0;           // most of any output column
  ElementTaps* elements_ = nullptr;  // of each output row
  std::uint32_t next_ = 0;           // source row that comes next
  std::uint32_t made_ = 0;           // lines, when columns come first
  float* quad_ = nullptr;           // four rows side by side: [element][row]
  Ring ring_;                        // what the pass down columns reads
  const float** tops_ = nullptr;     // those of them that one output row takes
  float* shrunk_ = nullptr;          // four rows that the pass down columns made for the pass along rows
  float* lines_ = nullptr;           // output rows: four when columns come first, else one
};

}  // namespace stoker::transform
