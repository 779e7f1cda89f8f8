#include "stoker/transform/values.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "stoker/transform/normal_numbers.h"
#include "stoker/transform/wide.h"

namespace stoker::transform {
namespace {

std::uint16_t word_of(float value) noexcept {
  return static_cast<std::uint16_t>(std::nearbyint(std::clamp(value, 0.0F, 65535.0F)));
}

// Every value becomes change(value). A slot of uint16 has values of that type.
template <typename Change>
void for_values(const StoreShape& shape, std::byte* slot, const Change& change) noexcept {
  const std::size_t count = std::size_t{shape.width} * shape.height * shape.channels;
  if (shape.dtype == DType::f32) {
    auto* const values = reinterpret_cast<float*>(slot);
    for (std::size_t i = 0; i < count; ++i) values[i] = change(values[i]);
    return;
  }
  assert(shape.dtype == DType::u16 && "for_values: the compiler has let another type through");
  auto* const words = reinterpret_cast<std::uint16_t*>(slot);
  for (std::size_t i = 0; i < count; ++i) words[i] = word_of(change(static_cast<float>(words[i])));
}

// values[i] += mean + deviation * noise[i], and so of words.
struct AddNoise {
  STOKER_KERNEL void run(float* __restrict values, std::size_t count, float mean, float deviation,
                         const float* __restrict noise) noexcept {
    for (std::size_t i = 0; i < count; ++i) values[i] += mean + deviation * noise[i];
  }
};
struct AddNoiseToWords {
  STOKER_KERNEL void run(std::uint16_t* __restrict words, std::size_t count, float mean, float deviation,
                         const float* __restrict noise) noexcept {
    constexpr float kWhole = 8388608.0F;  // halves to even, by the rounding of an addition
    for (std::size_t i = 0; i < count; ++i) {
      float value = static_cast<float>(words[i]) + (mean + deviation * noise[i]);
      value = value < 0.0F ? 0.0F : value;
      value = value > 65535.0F ? 65535.0F : value;
      words[i] = static_cast<std::uint16_t>(static_cast<std::int32_t>((value + kWhole) - kWhole));
    }
  }
};

void add_noise(const StoreShape& shape, std::byte* slot, float mean, float deviation, std::uint64_t key) noexcept {
  const std::size_t count = std::size_t{shape.width} * shape.height * shape.channels;
  NormalNumbers numbers(key);
  for (std::size_t first = 0; first < count; first += NormalNumbers::kBlock) {
    const std::size_t here = std::min(NormalNumbers::kBlock, count - first);
    const float* const noise = numbers.next_block();
    if (shape.dtype == DType::f32) {
      run_kernel<AddNoise>(reinterpret_cast<float*>(slot) + first, here, mean, deviation, noise);
    } else {
      run_kernel<AddNoiseToWords>(reinterpret_cast<std::uint16_t*>(slot) + first, here, mean, deviation, noise);
    }
  }
}

// MONAI's AdjustContrast, in float32 as numpy computes it.
void change_gamma(const StoreShape& shape, std::byte* slot, float gamma) noexcept {
  constexpr float kEpsilon = 1e-7F;
  float least = INFINITY, most = -INFINITY;
  for_values(shape, slot, [&](float value) {
    least = std::min(least, value), most = std::max(most, value);
    return value;
  });
  const float range = most - least, divisor = range + kEpsilon;
  for_values(shape, slot, [&](float value) { return std::pow((value - least) / divisor, gamma) * range + least; });
}

// Exchanges two stretches of bytes.
void exchange(std::byte* one, std::byte* other, std::size_t count) noexcept {
  std::swap_ranges(one, one + count, other);
}

void flip_view(const StoreShape& shape, std::byte* slot, bool is_vertical) noexcept {
  const std::size_t size = size_of(shape.dtype), planes = shape.planar ? shape.channels : 1;
  const std::size_t pixel = shape.planar ? size : size * shape.channels, row = pixel * shape.width;
  for (std::size_t c = 0; c < planes; ++c) {
    std::byte* const plane = slot + c * row * shape.height;
    if (is_vertical) {
      for (std::size_t y = 0; y < shape.height / 2; ++y)
        exchange(plane + y * row, plane + (shape.height - 1 - y) * row, row);
      continue;
    }
    for (std::size_t y = 0; y < shape.height; ++y) {
      for (std::size_t x = 0; x < shape.width / 2; ++x)
        exchange(plane + y * row + x * pixel, plane + y * row + (shape.width - 1 - x) * pixel, pixel);
    }
  }
}

}  // namespace

void change_values(const Action& action, const StoreShape& shape, std::byte* slot) noexcept {
  const auto figure = static_cast<float>(action.figures[0]);
  switch (action.what) {
    case Act::flip_x:
    case Act::flip_y:
      return flip_view(shape, slot, action.what == Act::flip_y);
    case Act::shift_values:
      return for_values(shape, slot, [&](float value) { return value + figure; });
    case Act::scale_values:
      return for_values(shape, slot, [&](float value) { return value * figure; });
    case Act::gamma_values:
      return change_gamma(shape, slot, figure);
    case Act::noise_values:
      return add_noise(shape, slot, figure, static_cast<float>(action.figures[1]), action.noise);
    default:
      assert(false && "change_values: not an action on values");
  }
}

}  // namespace stoker::transform
