// float32 to and from the two 16-bit floats, rounding to nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace stoker::transform {

constexpr std::uint16_t to_float16(float value) noexcept {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  bits &= 0x7FFFFFFF;
  if (bits > 0x7F800000) return static_cast<std::uint16_t>(sign | 0x7E00 | ((bits >> 13) & 0x1FF));
  if (bits >= 0x47800000) return static_cast<std::uint16_t>(sign | 0x7C00);
  if (bits < 0x38800000) {
    // Below the least normal number: adding 0.5 makes the float unit round at the last bit that remains.
    const float shifted = std::bit_cast<float>(bits) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000));
  }
  bits += 0xC8000FFF + ((bits >> 13) & 1);
  return static_cast<std::uint16_t>(sign | (bits >> 13));
}

constexpr std::uint16_t to_bfloat16(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

constexpr float from_float16(std::uint16_t half) noexcept {
  const std::uint32_t sign = std::uint32_t{half & 0x8000u} << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1F, fraction = half & 0x3FF;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000 | (fraction << 13));
  if (exponent == 0) {
    const float small = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -small : small;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

constexpr float from_bfloat16(std::uint16_t half) noexcept {
  return std::bit_cast<float>(std::uint32_t{half} << 16);
}

}  // namespace stoker::transform
