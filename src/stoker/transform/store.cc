#include "stoker/transform/store.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "stoker/transform/half.h"
#include "stoker/transform/resize.h"

namespace stoker::transform {
namespace {

struct Identity {
  std::uint8_t operator()(std::uint32_t, std::uint8_t value) const noexcept { return value; }
};
template <typename E>
struct Table {
  const E* entries;
  E operator()(std::uint32_t channel, std::uint8_t value) const noexcept { return entries[channel * 256 + value]; }
};
struct ToFloat16 {
  std::uint16_t operator()(std::uint32_t, float value) const noexcept { return to_float16(value); }
};
struct ToBfloat16 {
  std::uint16_t operator()(std::uint32_t, float value) const noexcept { return to_bfloat16(value); }
};
struct ToWord {
  std::uint16_t operator()(std::uint32_t, float value) const noexcept {
    return static_cast<std::uint16_t>(std::clamp(value, 0.0F, 65535.0F) + 0.5F);
  }
};
struct Same {
  float operator()(std::uint32_t, float value) const noexcept { return value; }
};

// Bytes alias everything: the pointers say that they do not, and all else is in locals.
template <std::uint32_t kChannels, bool kFlip, typename E, typename T, typename Map>
void store(const StoreShape& shape, const T* __restrict row, std::uint32_t y, const Map map, E* slot) noexcept {
  const std::size_t width = shape.width, plane = std::size_t{shape.height} * width;
  if (shape.planar) {
    E* __restrict line = slot + y * width;
    for (std::uint32_t c = 0; c < kChannels; ++c, line += plane) {
      const T* __restrict from = row + c;
      for (std::size_t x = 0; x < width; ++x) line[kFlip ? width - 1 - x : x] = map(c, from[x * kChannels]);
    }
  } else {
    E* __restrict line = slot + y * width * kChannels;
    for (std::size_t x = 0; x < width; ++x) {
      E* __restrict pixel = line + (kFlip ? width - 1 - x : x) * kChannels;
      for (std::uint32_t c = 0; c < kChannels; ++c) pixel[c] = map(c, row[x * kChannels + c]);
    }
  }
}

template <typename E, typename T, typename Map>
void store_any(const StoreShape& shape, const T* row, std::uint32_t y, bool flip, Map map, std::byte* slot) noexcept {
  E* const into = reinterpret_cast<E*>(slot);
  switch (shape.channels * 2 + (flip ? 1 : 0)) {
    case 2:
      return store<1, false>(shape, row, y, map, into);
    case 3:
      return store<1, true>(shape, row, y, map, into);
    case 4:
      return store<2, false>(shape, row, y, map, into);
    case 5:
      return store<2, true>(shape, row, y, map, into);
    case 6:
      return store<3, false>(shape, row, y, map, into);
    case 7:
      return store<3, true>(shape, row, y, map, into);
    case 8:
      return store<4, false>(shape, row, y, map, into);
    default:
      return store<4, true>(shape, row, y, map, into);
  }
}

#if defined(__x86_64__)
bool has_float16() noexcept {
  // clang 14's __builtin_cpu_supports does not know the word. That the system saves vectors, wide_kernels() has asked.
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  }();
  return has && wide_kernels();
}

// For each channel and each of the three vectors that 16 pixels take: which byte of it goes where, 0x80 for none.
using SplitMasks = std::array<std::array<std::array<std::uint8_t, 16>, 3>, 3>;
constexpr SplitMasks split_masks(bool flip) {
  SplitMasks masks{};
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (std::size_t vector = 0; vector < 3; ++vector) {
      for (std::size_t i = 0; i < 16; ++i) {
        const std::size_t byte = 3 * (flip ? 15 - i : i) + channel;
        masks[channel][vector][i] = byte / 16 == vector ? static_cast<std::uint8_t>(byte % 16) : 0x80;
      }
    }
  }
  return masks;
}
alignas(16) constexpr SplitMasks kSplit = split_masks(false), kSplitFlipped = split_masks(true);

// Pixels of three bytes to three planes, 16 at a time; returns how many pixels are done, from the left of the row.
__attribute__((target("avx2"))) std::size_t split_wide(const std::uint8_t* row, std::size_t width, std::size_t plane,
                                                       bool flip, std::uint8_t* line) noexcept {
  const SplitMasks& masks = flip ? kSplitFlipped : kSplit;
  const auto load = [](const std::uint8_t* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); };
  std::size_t x = 0;
  for (; x + 16 <= width; x += 16) {
    const __m128i a = load(row + x * 3), b = load(row + x * 3 + 16), c = load(row + x * 3 + 32);
    std::uint8_t* into = line + (flip ? width - 16 - x : x);
    for (std::size_t channel = 0; channel < 3; ++channel, into += plane) {
      const auto& mask = masks[channel];
      const __m128i ab =
          _mm_or_si128(_mm_shuffle_epi8(a, load(mask[0].data())), _mm_shuffle_epi8(b, load(mask[1].data())));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(into), _mm_or_si128(ab, _mm_shuffle_epi8(c, load(mask[2].data()))));
    }
  }
  return x;
}

bool has_fused() noexcept {
  static const bool has = __builtin_cpu_supports("fma") != 0;
  return has && wide_kernels();
}

// a / b, rounded once, from 1 / b rounded: the quotient's error is found with a fused multiply-add and taken off. Holds
// for all but very small and very large quotients; find_scaling tries every one that comes.
__attribute__((target("avx2,fma"), always_inline)) inline __m256 divided(__m256 a, __m256 b, __m256 inverse) noexcept {
  const __m256 quotient = _mm256_mul_ps(a, inverse);
  return _mm256_fmadd_ps(_mm256_fnmadd_ps(quotient, b, a), inverse, quotient);
}

// Whole vectors of one channel; returns how many elements are done.
__attribute__((target("avx2,fma"))) std::size_t scale_wide(const Scaling& scaling, std::size_t channel,
                                                           const std::uint8_t* from, std::size_t count,
                                                           float* into) noexcept {
  const __m256 all = _mm256_set1_ps(255.0F), share = _mm256_set1_ps(1.0F / 255.0F);
  const __m256 mean = _mm256_set1_ps(scaling.mean[channel]), std = _mm256_set1_ps(scaling.std[channel]);
  const __m256 inverse = _mm256_set1_ps(scaling.inverse_std[channel]);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + i));
    __m256 value = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    if (scaling.unit) value = divided(value, all, share);
    _mm256_storeu_ps(into + i, divided(_mm256_sub_ps(value, mean), std, inverse));
  }
  return i;
}

void store_scaled(const StoreShape& shape, const std::uint8_t* row, std::uint32_t y, bool flip, const float* table,
                  float* slot) noexcept {
  constexpr std::size_t kPiece = 512;
  alignas(32) std::uint8_t planes[3][kPiece];
  const std::size_t width = shape.width, plane = std::size_t{shape.height} * width;
  for (std::size_t first = 0; first < width; first += kPiece) {
    const std::size_t count = std::min(kPiece, width - first);
    const std::uint8_t* const pixels = row + first * 3;
    for (std::size_t x = split_wide(pixels, count, kPiece, flip, planes[0]); x < count; ++x) {
      for (std::size_t c = 0; c < 3; ++c) planes[c][flip ? count - 1 - x : x] = pixels[x * 3 + c];
    }
    float* line = slot + y * width + (flip ? width - first - count : first);
    for (std::size_t c = 0; c < 3; ++c, line += plane) {
      for (std::size_t x = scale_wide(shape.scaling, c, planes[c], count, line); x < count; ++x) {
        line[x] = table[c * 256 + planes[c][x]];
      }
    }
  }
}

// Whole vectors; returns how many elements are done.
__attribute__((target("avx2,f16c"))) std::size_t to_float16_wide(const float* from, std::size_t count,
                                                                 std::uint16_t* into) noexcept {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(into + i), halves);
  }
  return i;
}
#endif

void split(const StoreShape& shape, const std::uint8_t* row, std::uint32_t y, bool flip, std::uint8_t* slot) noexcept {
  const std::size_t width = shape.width, plane = std::size_t{shape.height} * width;
  std::uint8_t* const line = slot + y * width;
  std::size_t x = 0;
#if defined(__x86_64__)
  if (wide_kernels()) x = split_wide(row, width, plane, flip, line);
#endif
  for (; x < width; ++x) {
    const std::size_t at = flip ? width - 1 - x : x;
    for (std::size_t c = 0; c < 3; ++c) line[c * plane + at] = row[x * 3 + c];
  }
}

// [-1, 1) to the 16-bit values that soundfile would have read it from; what lies outside is clipped.
void to_int16(const float* from, std::size_t count, std::int16_t* into) noexcept {
  std::size_t i = 0;
#if defined(__x86_64__)
  const __m128 scale = _mm_set1_ps(32768.0F), least = _mm_set1_ps(-32768.0F), most = _mm_set1_ps(32767.0F);
  const auto four = [&](const float* at) {
    return _mm_cvtps_epi32(_mm_min_ps(_mm_max_ps(_mm_mul_ps(_mm_loadu_ps(at), scale), least), most));
  };
  for (; i + 8 <= count; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(into + i), _mm_packs_epi32(four(from + i), four(from + i + 4)));
  }
#endif
  for (; i < count; ++i)
    into[i] = static_cast<std::int16_t>(std::lrintf(std::clamp(from[i] * 32768.0F, -32768.0F, 32767.0F)));
}

}  // namespace

Scaling find_scaling(const float* table, bool unit, std::span<const float> mean, std::span<const float> std) noexcept {
  Scaling scaling;
#if defined(__x86_64__)
  if (!has_fused()) return scaling;
  scaling.unit = unit;
  for (std::size_t c = 0; c < 3; ++c) {
    scaling.mean[c] = mean.empty() ? 0.0F : mean[c];
    scaling.std[c] = std.empty() ? 1.0F : std[c];
    scaling.inverse_std[c] = 1.0F / scaling.std[c];
  }
  std::array<std::uint8_t, 256> every;
  for (std::size_t v = 0; v < 256; ++v) every[v] = static_cast<std::uint8_t>(v);
  scaling.exact = true;
  for (std::size_t c = 0; c < 3; ++c) {
    std::array<float, 256> computed;
    scale_wide(scaling, c, every.data(), 256, computed.data());
    scaling.exact = scaling.exact && std::memcmp(computed.data(), table + c * 256, sizeof computed) == 0;
  }
#else
  (void)table, (void)unit, (void)mean, (void)std;
#endif
  return scaling;
}

void store_row(const StoreShape& shape, const std::uint8_t* row, std::uint32_t y, bool flip, const void* table,
               std::byte* slot) noexcept {
#if defined(__x86_64__)
  if (shape.scaling.exact && shape.planar && shape.channels == 3 && shape.dtype == DType::f32 && wide_kernels()) {
    return store_scaled(shape, row, y, flip, static_cast<const float*>(table), reinterpret_cast<float*>(slot));
  }
#endif
  if (table == nullptr) {
    const std::size_t bytes = std::size_t{shape.width} * shape.channels;
    if (!flip && (!shape.planar || shape.channels == 1)) {
      std::memcpy(slot + y * bytes, row, bytes);
    } else if (shape.planar && shape.channels == 3) {
      split(shape, row, y, flip, reinterpret_cast<std::uint8_t*>(slot));
    } else {
      store_any<std::uint8_t>(shape, row, y, flip, Identity{}, slot);
    }
  } else if (shape.dtype == DType::f32) {
    store_any<float>(shape, row, y, flip, Table<float>{static_cast<const float*>(table)}, slot);
  } else {
    store_any<std::uint16_t>(shape, row, y, flip, Table<std::uint16_t>{static_cast<const std::uint16_t*>(table)}, slot);
  }
}

void store_planes(const StoreShape& shape, const std::uint8_t* planes, const void* table, std::byte* slot) noexcept {
  const std::size_t plane = std::size_t{shape.width} * shape.height;
  if (table == nullptr) {
    std::memcpy(slot, planes, plane * shape.channels);
    return;
  }
  for (std::size_t c = 0; c < shape.channels; ++c) {
    const std::uint8_t* const from = planes + c * plane;
    if (shape.dtype == DType::f32) {
      float* const into = reinterpret_cast<float*>(slot) + c * plane;
      std::size_t done = 0;
#if defined(__x86_64__)
      if (shape.scaling.exact && shape.channels == 3 && wide_kernels())
        done = scale_wide(shape.scaling, c, from, plane, into);
#endif
      const float* const entries = static_cast<const float*>(table) + c * 256;
      for (; done < plane; ++done) into[done] = entries[from[done]];
    } else {
      std::uint16_t* const into = reinterpret_cast<std::uint16_t*>(slot) + c * plane;
      const std::uint16_t* const entries = static_cast<const std::uint16_t*>(table) + c * 256;
      for (std::size_t i = 0; i < plane; ++i) into[i] = entries[from[i]];
    }
  }
}

void store_row(const StoreShape& shape, const float* row, std::uint32_t y, bool flip, std::byte* slot) noexcept {
  if (shape.channels == 1 && shape.dtype != DType::f32) {
    auto* const line = reinterpret_cast<std::uint16_t*>(slot) + std::size_t{y} * shape.width;
    convert(row, shape.width, shape.dtype, reinterpret_cast<std::byte*>(line));
    if (flip) std::reverse(line, line + shape.width);
    return;
  }
  switch (shape.dtype) {
    case DType::f16:
      return store_any<std::uint16_t>(shape, row, y, flip, ToFloat16{}, slot);
    case DType::bf16:
      return store_any<std::uint16_t>(shape, row, y, flip, ToBfloat16{}, slot);
    case DType::u16:
      return store_any<std::uint16_t>(shape, row, y, flip, ToWord{}, slot);
    default:
      return store_any<float>(shape, row, y, flip, Same{}, slot);
  }
}

void convert(const float* from, std::size_t count, DType dtype, std::byte* into) noexcept {
  if (dtype == DType::f32) {
    if (count != 0) std::memcpy(into, from, count * sizeof(float));
    return;
  }
  if (dtype == DType::i16) return to_int16(from, count, reinterpret_cast<std::int16_t*>(into));
  auto* const out = reinterpret_cast<std::uint16_t*>(into);
  if (dtype == DType::f16) {
    std::size_t done = 0;
#if defined(__x86_64__)
    if (has_float16()) done = to_float16_wide(from, count, out);
#endif
    for (std::size_t i = done; i < count; ++i) out[i] = to_float16(from[i]);
  } else if (dtype == DType::u16) {
    for (std::size_t i = 0; i < count; ++i) out[i] = ToWord{}(0, from[i]);
  } else {
    for (std::size_t i = 0; i < count; ++i) out[i] = to_bfloat16(from[i]);
  }
}

}  // namespace stoker::transform
