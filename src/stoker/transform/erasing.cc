#include "stoker/transform/erasing.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "stoker/base/random.h"

namespace stoker::transform {
namespace {

// Numbers of a normal distribution, two at a time (Box and Muller).
class Normal {
 public:
  explicit Normal(std::uint64_t key) noexcept : random_(key, 0, 0) {}

  float next() noexcept {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    const double radius = std::sqrt(-2 * std::log((random_.next() + 1.0) * 0x1p-32));
    const double angle = 2 * std::numbers::pi * random_.uniform();
    spare_ = static_cast<float>(radius * std::sin(angle));
    has_spare_ = true;
    return static_cast<float>(radius * std::cos(angle));
  }

 private:
  Random random_;
  float spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace

void erase(const Action& action, const StoreShape& shape, std::byte* slot) noexcept {
  const auto figure = [&](std::size_t i) { return static_cast<std::size_t>(action.figures[i]); };
  const std::size_t x = figure(0), y = figure(1), width = figure(2), height = figure(3);
  const std::size_t size = size_of(shape.dtype), channels = shape.channels;
  Normal noise(action.noise);
  for (std::size_t c = 0; c < channels; ++c) {
    const auto value = static_cast<float>(action.figures[4 + c]);
    std::byte stored[sizeof(float)];
    convert(&value, 1, shape.dtype, stored);
    for (std::size_t row = y; row < y + height; ++row) {
      for (std::size_t column = x; column < x + width; ++column) {
        const std::size_t at = shape.planar ? (c * shape.height + row) * shape.width + column
                                            : (row * shape.width + column) * channels + c;
        if (action.is_random) {
          const float drawn = noise.next();
          convert(&drawn, 1, shape.dtype, stored);
        }
        std::memcpy(slot + at * size, stored, size);
      }
    }
  }
}

}  // namespace stoker::transform
