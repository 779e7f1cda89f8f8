// Bilinear resize from the four nearest pixels, with no antialiasing, row by row, of uint8 with one or three channels:
// what OpenCV's INTER_LINEAR does, at a fraction of Pillow's work. Of plain loops and AVX2 kernels, with equal results.
// Memory comes from the Scratch and stays taken. One thread per FastResizer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "stoker/base/result.h"
#include "stoker/base/scratch.h"
#include "stoker/transform/resize.h"

namespace stoker::transform {

// Whether a FastResizer can do it, and leaves out little: no axis shrinks to a third or less.
bool suits_fast_resize(const Resizing& resizing, std::uint32_t channels) noexcept;

class FastResizer {
 public:
  // `source` must hold needed(resizing) and outlive the rows. `mirrored` makes no difference.
  Result prepare(const Part<std::uint8_t>& source, const Resizing& resizing, Scratch& scratch) noexcept;

  // Row `y` of `keep`, keep.width pixels; valid until the next call.
  const std::uint8_t* row(std::uint32_t y) noexcept;

 private:
  Part<std::uint8_t> source_;
  std::int64_t left_ = 0;                                   // first column that is needed
  std::size_t in_elements_ = 0, count_ = 0, channels_ = 0;  // of a source row that are needed; pixels of an output row
  std::uint32_t* across_ = nullptr;                         // first element of each output pixel's two, in `between_`
  std::int16_t* across_share_ = nullptr;  // of the second pixel, in 2^-15; laid out as the kernel reads it
  std::int64_t* down_ = nullptr;          // upper source row of each output row
  std::int16_t* down_share_ = nullptr;    // of the lower one
  std::uint8_t* between_ = nullptr;       // a source row, blended of two
  std::uint8_t* line_ = nullptr;
};

}  // namespace stoker::transform
