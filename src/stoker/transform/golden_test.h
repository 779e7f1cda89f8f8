// For tests: inputs by the formula of tests/formats/make_resize.py, and what the reference programs make of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stoker/base/dtype.h"
#include "stoker/base/pixels.h"
#include "stoker/transform/ops.h"

namespace stoker::transform {

struct GoldenResize {
  bool is_float;
  std::uint32_t seed, width, height, channels;
  Rect crop;
  std::uint32_t to_width, to_height;
  Filter filter;
  std::uint32_t crc;
};
struct GoldenPlan {
  const char* text;
  std::uint32_t seed, width, height, channels;
  DType dtype;
  std::uint32_t crc;
};
struct GoldenDeep {
  const char* text;
  struct {
    std::uint32_t place;
    float value;
  } values[13];
};
struct GoldenAudio {
  std::uint32_t seed, frames, from_hz, to_hz, frames_out;
  struct {
    std::uint32_t place;
    float value;
  } values[5];
};

template <typename T, typename Map>
std::vector<T> make_numbers(std::uint32_t seed, std::size_t count, Map map) {
  std::vector<T> numbers(count);
  for (T& number : numbers) {
    seed = seed * 1664525u + 1013904223u;
    number = static_cast<T>(map(seed));
  }
  return numbers;
}
inline std::vector<std::uint8_t> make_bytes(std::uint32_t seed, std::size_t count) {
  return make_numbers<std::uint8_t>(seed, count, [](std::uint32_t s) { return s >> 24; });
}
inline std::vector<std::uint16_t> make_words(std::uint32_t seed, std::size_t count) {
  return make_numbers<std::uint16_t>(seed, count, [](std::uint32_t s) { return s >> 16; });
}
inline std::vector<float> make_floats(std::uint32_t seed, std::size_t count) {
  return make_numbers<float>(seed, count, [](std::uint32_t s) { return static_cast<float>(s >> 8) * 0x1p-24F; });
}
inline std::vector<float> make_waveform(std::uint32_t seed, std::size_t frames) {
  return make_numbers<float>(seed, frames, [](std::uint32_t s) { return static_cast<float>(s >> 8) * 0x1p-23F - 1; });
}

// zlib's.
inline std::uint32_t crc32(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xEDB88320u & (0u - (crc & 1)));
  }
  return ~crc;
}

#include "stoker/transform/golden.inc"

}  // namespace stoker::transform
