#include "stoker/transform/erasing.h"

#include <algorithm>
#include <cstring>

#include "stoker/transform/normal_numbers.h"

namespace stoker::transform {
void erase(const Action& action, const StoreShape& shape, std::byte* slot) noexcept {
  const auto figure = [&](std::size_t i) { return static_cast<std::size_t>(action.figures[i]); };
  const std::size_t x = figure(0), y = figure(1), width = figure(2), height = figure(3);
  const std::size_t size = size_of(shape.dtype), channels = shape.channels;
  NormalNumbers noise(action.noise);
  for (std::size_t c = 0; c < channels; ++c) {
    const auto value = static_cast<float>(action.figures[4 + c]);
    std::byte stored[sizeof(float)];
    convert(&value, 1, shape.dtype, stored);
    for (std::size_t row = y; row < y + height; ++row) {
      for (std::size_t column = x; column < x + width; ++column) {
        const std::size_t at = shape.planar ? (c * shape.height + row) * shape.width + column
                                            : (row * shape.width + column) * channels + c;
        if (action.is_random) {
          const float drawn = (noise.next() - value) / action.fill[c];
          convert(&drawn, 1, shape.dtype, stored);
        }
        std::memcpy(slot + at * size, stored, size);
      }
    }
  }
}

}  // namespace stoker::transform
