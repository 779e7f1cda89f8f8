// Steps that the AVX2 kernels share: two blocks at a time, one in each 128-bit half, so that no value crosses the
// halves. Private to kernels_avx2.cc and reduced_avx2.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <immintrin.h>

#include "stoker/codec/jpeg/entropy.h"
#include "stoker/codec/jpeg/target.h"

#define STOKER_STEP STOKER_JPEG_FAST [[gnu::always_inline]] inline

namespace stoker::codec::jpeg {

// Eight lines of eight 16-bit values, twice.
struct Lines {
  __m256i line[8];
};

// 32-bit products of the values 0-3 and 4-7 of each half.
struct Wide {
  __m256i low, high;
};

STOKER_STEP __m256i factors(int a, int b) noexcept {
  return _mm256_set1_epi32(static_cast<int>(static_cast<unsigned>(b) << 16 | (static_cast<unsigned>(a) & 0xFFFF)));
}

// a * factor_a + b * factor_b, given a and b alternating.
STOKER_STEP Wide times(const Wide& pairs, __m256i pair_of_factors) noexcept {
  return {_mm256_madd_epi16(pairs.low, pair_of_factors), _mm256_madd_epi16(pairs.high, pair_of_factors)};
}
STOKER_STEP Wide alternating(__m256i a, __m256i b) noexcept {
  return {_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)};
}
STOKER_STEP Wide operator+(const Wide& a, const Wide& b) noexcept {
  return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}
STOKER_STEP Wide operator-(const Wide& a, const Wide& b) noexcept {
  return {_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)};
}
template <int kBits>
STOKER_STEP Wide scaled_up(__m256i values) noexcept {
  const __m256i zero = _mm256_setzero_si256();
  return {_mm256_srai_epi32(_mm256_unpacklo_epi16(zero, values), 16 - kBits),
          _mm256_srai_epi32(_mm256_unpackhi_epi16(zero, values), 16 - kBits)};
}
template <int kBits>
STOKER_STEP __m256i scaled_down(const Wide& values) noexcept {
  const __m256i half = _mm256_set1_epi32(1 << (kBits - 1));
  return _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(values.low, half), kBits),
                            _mm256_srai_epi32(_mm256_add_epi32(values.high, half), kBits));
}

// Values that no whole file has; what overflows then depends on details that the plain kernels have.
STOKER_STEP bool is_beyond_files(__m256i dequantized) noexcept {
  const __m256i beyond = _mm256_cmpgt_epi16(_mm256_abs_epi16(dequantized), _mm256_set1_epi16(8190));
  const __m256i least = _mm256_cmpeq_epi16(dequantized, _mm256_set1_epi16(-32768));  // has no absolute value
  const __m256i found = _mm256_or_si256(beyond, least);
  return !_mm256_testz_si256(found, found);
}

STOKER_STEP __m256i dequantized_row(const Block& a, const Block& b, const std::int16_t* quant, int row) noexcept {
  const auto* of_a = reinterpret_cast<const __m128i*>(a.coefficient) + row;
  const auto* of_b = reinterpret_cast<const __m128i*>(b.coefficient) + row;
  const auto* of_quant = reinterpret_cast<const __m128i*>(quant) + row;
  const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_load_si128(of_a)), _mm_load_si128(of_b), 1);
  return _mm256_mullo_epi16(both, _mm256_broadcastsi128_si256(_mm_loadu_si128(of_quant)));
}

// A block of which only the mean is known.
template <std::size_t kSide>
STOKER_STEP void fill_block(std::int16_t dc, std::int16_t quant, std::uint8_t* into, std::size_t stride) noexcept {
  const auto column = static_cast<std::int16_t>(dc * quant * 4);
  const int value = (column + 16) >> 5;
  const auto sample = static_cast<std::uint8_t>((value < -128 ? -128 : value > 127 ? 127 : value) + 128);
  for (std::size_t y = 0; y < kSide; ++y) std::memset(into + y * stride, sample, kSide);
}

}  // namespace stoker::codec::jpeg
