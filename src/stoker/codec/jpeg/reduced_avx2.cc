// Two blocks at a time; the arithmetic is that of kernels.cc.
#include "stoker/codec/jpeg/reduced_avx2.h"

#if defined(__x86_64__)

#include "stoker/codec/jpeg/steps_avx2.h"

namespace stoker::codec::jpeg {
namespace {

// What the odd frequencies 1, 3, 5 and 7 add to the outer and the inner two of four outputs, given in pairs.
STOKER_STEP __m256i outer_of_4(__m256i x13, __m256i x57) noexcept {
  return _mm256_add_epi32(_mm256_madd_epi16(x13, factors(20995, 7373)), _mm256_madd_epi16(x57, factors(-4926, -4176)));
}
STOKER_STEP __m256i inner_of_4(__m256i x13, __m256i x57) noexcept {
  return _mm256_add_epi32(_mm256_madd_epi16(x13, factors(8697, -17799)), _mm256_madd_epi16(x57, factors(11893, -1730)));
}

STOKER_STEP __m256i odd_of_2(__m256i x13, __m256i x57) noexcept {
  return _mm256_add_epi32(_mm256_madd_epi16(x13, factors(29692, -10426)), _mm256_madd_epi16(x57, factors(6967, -5906)));
}

template <int kBits>
STOKER_STEP __m256i descaled(__m256i values) noexcept {
  return _mm256_srai_epi32(_mm256_add_epi32(values, _mm256_set1_epi32(1 << (kBits - 1))), kBits);
}

// The odd ones of both, alternating.
STOKER_STEP __m256i odd_columns(__m256i upper, __m256i lower) noexcept {
  return _mm256_blend_epi16(_mm256_srli_epi32(upper, 16), lower, 0xAA);
}

STOKER_STEP void store4(std::uint8_t* into, int bytes) noexcept {
  std::memcpy(into, &bytes, 4);
}

}  // namespace

STOKER_JPEG_FAST void transform_to_4_avx2(const Block& a, const Block& b, const std::int16_t* quant, unsigned last,
                                          std::uint8_t* into_a, std::uint8_t* into_b, std::size_t stride) noexcept {
  if (last == 0) {
    fill_block<4>(a.coefficient[0], quant[0], into_a, stride);
    fill_block<4>(b.coefficient[0], quant[0], into_b, stride);
    return;
  }
  const __m256i x0 = dequantized_row(a, b, quant, 0);
  if (is_beyond_files(x0)) [[unlikely]] {
    return kPlainKernels.transform_to_4(a, b, quant, last, into_a, into_b, stride);
  }
  const Wide even0 = scaled_up<14>(x0);
  const Wide x26 = alternating(dequantized_row(a, b, quant, 2), dequantized_row(a, b, quant, 6));
  const Wide even2 = times(x26, factors(15137, -6270));
  const Wide x13 = alternating(dequantized_row(a, b, quant, 1), dequantized_row(a, b, quant, 3));
  const Wide x57 = alternating(dequantized_row(a, b, quant, 5), dequantized_row(a, b, quant, 7));
  const Wide outer = {outer_of_4(x13.low, x57.low), outer_of_4(x13.high, x57.high)};
  const Wide inner = {inner_of_4(x13.low, x57.low), inner_of_4(x13.high, x57.high)};
  const __m256i row[4] = {scaled_down<12>(even0 + even2 + outer), scaled_down<12>(even0 - even2 + inner),
                          scaled_down<12>(even0 - even2 - inner), scaled_down<12>(even0 + even2 - outer)};

  // Columns in pairs, four values each: 0 and 1, 2 and 3, 4 and 5, 6 and 7.
  const __m256i left01 = _mm256_unpacklo_epi16(row[0], row[1]), left23 = _mm256_unpacklo_epi16(row[2], row[3]);
  const __m256i right01 = _mm256_unpackhi_epi16(row[0], row[1]), right23 = _mm256_unpackhi_epi16(row[2], row[3]);
  const __m256i c01 = _mm256_unpacklo_epi32(left01, left23), c23 = _mm256_unpackhi_epi32(left01, left23);
  const __m256i c45 = _mm256_unpacklo_epi32(right01, right23), c67 = _mm256_unpackhi_epi32(right01, right23);

  const __m256i e0 = _mm256_srai_epi32(_mm256_unpacklo_epi16(_mm256_setzero_si256(), c01), 2);
  const __m256i e2 = _mm256_madd_epi16(_mm256_unpacklo_epi16(c23, c67), factors(15137, -6270));
  const __m256i c13 = _mm256_unpackhi_epi16(c01, c23), c57 = _mm256_unpackhi_epi16(c45, c67);
  const __m256i out = outer_of_4(c13, c57), in = inner_of_4(c13, c57);
  const __m256i sum = _mm256_add_epi32(e0, e2), difference = _mm256_sub_epi32(e0, e2);
  const __m256i column0 = descaled<19>(_mm256_add_epi32(sum, out)), column3 = descaled<19>(_mm256_sub_epi32(sum, out));
  const __m256i column1 = descaled<19>(_mm256_add_epi32(difference, in));
  const __m256i column2 = descaled<19>(_mm256_sub_epi32(difference, in));
  const __m256i even = _mm256_packs_epi32(column0, column2), odd = _mm256_packs_epi32(column1, column3);
  const __m256i pairs01 = _mm256_unpacklo_epi16(even, odd), pairs23 = _mm256_unpackhi_epi16(even, odd);
  const __m256i bytes = _mm256_xor_si256(
      _mm256_packs_epi16(_mm256_unpacklo_epi32(pairs01, pairs23), _mm256_unpackhi_epi32(pairs01, pairs23)),
      _mm256_set1_epi8(-128));
  const __m128i of_a = _mm256_castsi256_si128(bytes), of_b = _mm256_extracti128_si256(bytes, 1);
  store4(into_a, _mm_cvtsi128_si32(of_a));
  store4(into_a + stride, _mm_extract_epi32(of_a, 1));
  store4(into_a + 2 * stride, _mm_extract_epi32(of_a, 2));
  store4(into_a + 3 * stride, _mm_extract_epi32(of_a, 3));
  store4(into_b, _mm_cvtsi128_si32(of_b));
  store4(into_b + stride, _mm_extract_epi32(of_b, 1));
  store4(into_b + 2 * stride, _mm_extract_epi32(of_b, 2));
  store4(into_b + 3 * stride, _mm_extract_epi32(of_b, 3));
}

STOKER_JPEG_FAST void transform_to_2_avx2(const Block& a, const Block& b, const std::int16_t* quant, unsigned,
                                          std::uint8_t* into_a, std::uint8_t* into_b, std::size_t stride) noexcept {
  const __m256i x0 = dequantized_row(a, b, quant, 0), x1 = dequantized_row(a, b, quant, 1);
  const __m256i x3 = dequantized_row(a, b, quant, 3), x5 = dequantized_row(a, b, quant, 5);
  const __m256i x7 = dequantized_row(a, b, quant, 7);
  // Column 0 is in the first of the low four values; of the others only columns 1, 3, 5 and 7 are used.
  const __m256i odd0 = odd_of_2(_mm256_unpacklo_epi16(x1, x3), _mm256_unpacklo_epi16(x5, x7));
  const __m256i odd1357 = odd_of_2(odd_columns(x1, x3), odd_columns(x5, x7));
  const __m256i even0 = _mm256_srai_epi32(_mm256_slli_epi32(x0, 16), 1);
  const __m256i even1357 = _mm256_srai_epi32(_mm256_and_si256(x0, _mm256_set1_epi32(-65536)), 1);

  // The upper and the lower row of columns 1, 3, 5 and 7, and of column 0.
  const __m256i upper = descaled<13>(_mm256_add_epi32(even1357, odd1357));
  const __m256i lower = descaled<13>(_mm256_sub_epi32(even1357, odd1357));
  const __m256i first =
      descaled<13>(_mm256_unpacklo_epi32(_mm256_add_epi32(even0, odd0), _mm256_sub_epi32(even0, odd0)));
  const __m256i both = _mm256_packs_epi32(upper, lower);                      // 1 3 5 7 above, 1 3 5 7 below
  const __m256i pairs = _mm256_shuffle_epi32(both, _MM_SHUFFLE(3, 1, 2, 0));  // 1 3, 1 3, 5 7, 5 7
  const __m256i odd = odd_of_2(pairs, _mm256_shuffle_epi32(pairs, _MM_SHUFFLE(3, 2, 3, 2)));
  const __m256i even = _mm256_slli_epi32(first, 15);
  const __m256i samples = descaled<20>(_mm256_unpacklo_epi32(_mm256_add_epi32(even, odd), _mm256_sub_epi32(even, odd)));
  const __m256i words = _mm256_packs_epi32(samples, samples);
  const __m256i bytes = _mm256_xor_si256(_mm256_packs_epi16(words, words), _mm256_set1_epi8(-128));
  const int of_a = _mm_cvtsi128_si32(_mm256_castsi256_si128(bytes));
  const int of_b = _mm_cvtsi128_si32(_mm256_extracti128_si256(bytes, 1));
  for (std::size_t y = 0; y < 2; ++y) {
    const auto pixels_a = static_cast<std::uint16_t>(static_cast<unsigned>(of_a) >> 16 * y);
    const auto pixels_b = static_cast<std::uint16_t>(static_cast<unsigned>(of_b) >> 16 * y);
    std::memcpy(into_a + y * stride, &pixels_a, 2);
    std::memcpy(into_b + y * stride, &pixels_b, 2);
  }
}

}  // namespace stoker::codec::jpeg

#endif
