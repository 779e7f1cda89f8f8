// An image in memory, interleaved, and a rectangle in it. Plain views: they own nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "stoker/base/dtype.h"

namespace stoker {

struct Rect {
  std::uint32_t x = 0, y = 0, width = 0, height = 0;
  friend bool operator==(const Rect&, const Rect&) = default;
};

struct Pixels {
  std::byte* data = nullptr;     // first pixel of the first row
  std::size_t stride_bytes = 0;  // from row to row
  std::uint32_t width = 0, height = 0;
  std::uint8_t channels = 0;  // 1 to 4
  DType dtype = DType::u8;    // u8, or u16 in the machine's byte order

  std::size_t row_bytes() const noexcept { return std::size_t{width} * channels * size_of(dtype); }
};

}  // namespace stoker
