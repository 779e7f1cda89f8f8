#include "stoker/codec/jpeg/kernels.h"

#if defined(__x86_64__)

#include "stoker/codec/jpeg/reduced_avx2.h"
#include "stoker/codec/jpeg/steps_avx2.h"

namespace stoker::codec::jpeg {
namespace {

// ---- the transform

template <int kBits>
STOKER_STEP Lines combined(const Wide (&even)[4], const Wide (&odd)[4]) noexcept {
  Lines out;
  for (int i = 0; i < 4; ++i) {
    out.line[i] = scaled_down<kBits>(even[i] + odd[i]);
    out.line[7 - i] = scaled_down<kBits>(even[i] - odd[i]);
  }
  return out;
}

// Transforms along the lines' index: eight transforms in each half.
template <int kBits>
STOKER_STEP Lines transform_lines(const Lines& in) noexcept {
  const __m256i* x = in.line;
  const Wide even04 = scaled_up<13>(_mm256_add_epi16(x[0], x[4])), even4 = scaled_up<13>(_mm256_sub_epi16(x[0], x[4]));
  const Wide x26 = alternating(x[2], x[6]);
  const Wide even2 = times(x26, factors(4433, 4433 - 15137)), even3 = times(x26, factors(4433 + 6270, 4433));
  const Wide even[4] = {even04 + even3, even4 + even2, even4 - even2, even04 - even3};

  const Wide z = alternating(_mm256_add_epi16(x[7], x[3]), _mm256_add_epi16(x[5], x[1]));
  const Wide a = times(z, factors(9633 - 16069, 9633)), b = times(z, factors(9633, 9633 - 3196));
  const Wide x17 = alternating(x[1], x[7]), x35 = alternating(x[3], x[5]);
  const Wide odd[4] = {times(x17, factors(12299 - 7373, -7373)) + b, times(x35, factors(25172 - 20995, -20995)) + a,
                       times(x35, factors(-20995, 16819 - 20995)) + b, times(x17, factors(-7373, 2446 - 7373)) + a};
  return combined<kBits>(even, odd);
}

// The same if lines 4 to 7 are zero; the sums of the odd part are multiplied out.
STOKER_STEP void transform_four(const __m256i* x, Wide (&even)[4], Wide (&odd)[4]) noexcept {
  const Wide even0 = scaled_up<13>(x[0]);
  const Wide x2 = alternating(x[2], _mm256_setzero_si256());
  const Wide even2 = times(x2, factors(4433, 0)), even3 = times(x2, factors(4433 + 6270, 0));
  even[0] = even0 + even3;
  even[1] = even0 + even2;
  even[2] = even0 - even2;
  even[3] = even0 - even3;
  const Wide x13 = alternating(x[1], x[3]);
  odd[0] = times(x13, factors(12299 - 7373 + 9633 - 3196, 9633));
  odd[1] = times(x13, factors(9633, 25172 - 20995 + 9633 - 16069));
  odd[2] = times(x13, factors(9633 - 3196, 9633 - 20995));
  odd[3] = times(x13, factors(9633 - 7373, 9633 - 16069));
}

STOKER_STEP Lines transposed(const Lines& in) noexcept {
  __m256i a[8], b[8];
  for (int i = 0; i < 4; ++i) {  // 0 and 4, 1 and 5, ...
    a[2 * i] = _mm256_unpacklo_epi16(in.line[i], in.line[i + 4]);
    a[2 * i + 1] = _mm256_unpackhi_epi16(in.line[i], in.line[i + 4]);
  }
  for (int i = 0; i < 4; ++i) {
    b[2 * i] = _mm256_unpacklo_epi16(a[i], a[i + 4]);
    b[2 * i + 1] = _mm256_unpackhi_epi16(a[i], a[i + 4]);
  }
  Lines out;
  for (int i = 0; i < 4; ++i) {
    out.line[2 * i] = _mm256_unpacklo_epi16(b[i], b[i + 4]);
    out.line[2 * i + 1] = _mm256_unpackhi_epi16(b[i], b[i + 4]);
  }
  return out;
}

STOKER_STEP void store_two_rows(__m256i rows, int first, std::uint8_t* into_a, std::uint8_t* into_b,
                                std::size_t stride) noexcept {
  const std::size_t at = static_cast<std::size_t>(first) * stride;
  const __m128i a = _mm256_castsi256_si128(rows), b = _mm256_extracti128_si256(rows, 1);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(into_a + at), a);
  _mm_storeh_pi(reinterpret_cast<__m64*>(into_a + at + stride), _mm_castsi128_ps(a));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(into_b + at), b);
  _mm_storeh_pi(reinterpret_cast<__m64*>(into_b + at + stride), _mm_castsi128_ps(b));
}

// Each line is a column of the block.
STOKER_STEP void store_columns(const Lines& columns, std::uint8_t* into_a, std::uint8_t* into_b,
                               std::size_t stride) noexcept {
  const __m256i* x = columns.line;
  const __m256i center = _mm256_set1_epi8(-128);
  const __m256i x02 = _mm256_xor_si256(_mm256_packs_epi16(x[0], x[2]), center);
  const __m256i x13 = _mm256_xor_si256(_mm256_packs_epi16(x[1], x[3]), center);
  const __m256i x46 = _mm256_xor_si256(_mm256_packs_epi16(x[4], x[6]), center);
  const __m256i x57 = _mm256_xor_si256(_mm256_packs_epi16(x[5], x[7]), center);
  const __m256i x01 = _mm256_unpacklo_epi8(x02, x13), x23 = _mm256_unpackhi_epi8(x02, x13);
  const __m256i x45 = _mm256_unpacklo_epi8(x46, x57), x67 = _mm256_unpackhi_epi8(x46, x57);
  const __m256i left0 = _mm256_unpacklo_epi16(x01, x23), left4 = _mm256_unpackhi_epi16(x01, x23);
  const __m256i right0 = _mm256_unpacklo_epi16(x45, x67), right4 = _mm256_unpackhi_epi16(x45, x67);
  store_two_rows(_mm256_unpacklo_epi32(left0, right0), 0, into_a, into_b, stride);
  store_two_rows(_mm256_unpackhi_epi32(left0, right0), 2, into_a, into_b, stride);
  store_two_rows(_mm256_unpacklo_epi32(left4, right4), 4, into_a, into_b, stride);
  store_two_rows(_mm256_unpackhi_epi32(left4, right4), 6, into_a, into_b, stride);
}

STOKER_JPEG_FAST void transform(const Block& a, const Block& b, const std::int16_t* quant, unsigned last,
                                std::uint8_t* into_a, std::uint8_t* into_b, std::size_t stride) noexcept {
  if (last == 0) {
    fill_block<8>(a.coefficient[0], quant[0], into_a, stride);
    fill_block<8>(b.coefficient[0], quant[0], into_b, stride);
    return;
  }
  Lines rows;
  rows.line[0] = dequantized_row(a, b, quant, 0);
  if (is_beyond_files(rows.line[0])) [[unlikely]] {
    return kPlainKernels.transform(a, b, quant, last, into_a, into_b, stride);
  }
  rows.line[1] = dequantized_row(a, b, quant, 1);
  rows.line[2] = dequantized_row(a, b, quant, 2);
  rows.line[3] = dequantized_row(a, b, quant, 3);
  if (last < 10) {  // only the upper left 4 x 4
    Wide even[4], odd[4];
    transform_four(rows.line, even, odd);
    __m256i sums[8];
    const __m256i half = _mm256_set1_epi32(1 << 10);
    for (int i = 0; i < 4; ++i) {
      sums[i] = _mm256_srai_epi32(_mm256_add_epi32(_mm256_add_epi32(even[i].low, odd[i].low), half), 11);
      sums[7 - i] = _mm256_srai_epi32(_mm256_add_epi32(_mm256_sub_epi32(even[i].low, odd[i].low), half), 11);
    }
    __m256i packed[4];  // rows i and i + 4, four columns each
    for (int i = 0; i < 4; ++i) packed[i] = _mm256_packs_epi32(sums[i], sums[i + 4]);
    const __m256i upper01 = _mm256_unpacklo_epi16(packed[0], packed[1]);
    const __m256i upper23 = _mm256_unpacklo_epi16(packed[2], packed[3]);
    const __m256i lower01 = _mm256_unpackhi_epi16(packed[0], packed[1]);
    const __m256i lower23 = _mm256_unpackhi_epi16(packed[2], packed[3]);
    const __m256i upper_a = _mm256_unpacklo_epi32(upper01, upper23), upper_b = _mm256_unpackhi_epi32(upper01, upper23);
    const __m256i lower_a = _mm256_unpacklo_epi32(lower01, lower23), lower_b = _mm256_unpackhi_epi32(lower01, lower23);
    const __m256i columns[4] = {_mm256_unpacklo_epi64(upper_a, lower_a), _mm256_unpackhi_epi64(upper_a, lower_a),
                                _mm256_unpacklo_epi64(upper_b, lower_b), _mm256_unpackhi_epi64(upper_b, lower_b)};
    transform_four(columns, even, odd);
    store_columns(combined<18>(even, odd), into_a, into_b, stride);
    return;
  }
  rows.line[4] = dequantized_row(a, b, quant, 4);
  rows.line[5] = dequantized_row(a, b, quant, 5);
  rows.line[6] = dequantized_row(a, b, quant, 6);
  rows.line[7] = dequantized_row(a, b, quant, 7);
  store_columns(transform_lines<18>(transposed(transform_lines<11>(rows))), into_a, into_b, stride);
}

// ---- upsampling: sixteen samples at a time, in 16 bits

STOKER_STEP __m256i widened(const std::uint8_t* samples) noexcept {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(samples)));
}

STOKER_STEP __m256i thrice(__m256i values) noexcept {
  return _mm256_add_epi16(_mm256_add_epi16(values, values), values);
}

STOKER_STEP void store32(std::uint8_t* into, __m256i bytes) noexcept {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(into), bytes);
}

STOKER_JPEG_FAST void double_row(const std::uint8_t* row, std::size_t count, std::uint8_t* into) noexcept {
  const __m256i one = _mm256_set1_epi16(1), two = _mm256_set1_epi16(2);
  for (std::size_t i = 0; i < count; i += 16) {
    const __m256i here = thrice(widened(row + i));
    const __m256i before = widened(row + i - 1), after = widened(row + i + 1);
    const __m256i even = _mm256_srli_epi16(_mm256_add_epi16(_mm256_add_epi16(here, before), one), 2);
    const __m256i odd = _mm256_srli_epi16(_mm256_add_epi16(_mm256_add_epi16(here, after), two), 2);
    store32(into + 2 * i, _mm256_or_si256(even, _mm256_slli_epi16(odd, 8)));
  }
}

STOKER_JPEG_FAST void double_between(const std::uint8_t* near, const std::uint8_t* far, std::size_t count,
                                     std::uint8_t* into) noexcept {
  const __m256i seven = _mm256_set1_epi16(7), eight = _mm256_set1_epi16(8);
  for (std::size_t i = 0; i < count; i += 16) {
    const __m256i before = _mm256_add_epi16(thrice(widened(near + i - 1)), widened(far + i - 1));
    const __m256i here = thrice(_mm256_add_epi16(thrice(widened(near + i)), widened(far + i)));
    const __m256i after = _mm256_add_epi16(thrice(widened(near + i + 1)), widened(far + i + 1));
    const __m256i even = _mm256_srli_epi16(_mm256_add_epi16(_mm256_add_epi16(here, before), eight), 4);
    const __m256i odd = _mm256_srli_epi16(_mm256_add_epi16(_mm256_add_epi16(here, after), seven), 4);
    store32(into + 2 * i, _mm256_or_si256(even, _mm256_slli_epi16(odd, 8)));
  }
}

STOKER_JPEG_FAST void blend(const std::uint8_t* near, const std::uint8_t* far, std::size_t count, unsigned rounding,
                            std::uint8_t* into) noexcept {
  const __m256i round = _mm256_set1_epi16(static_cast<short>(rounding));
  for (std::size_t i = 0; i < count; i += 16) {
    const __m256i sum = _mm256_add_epi16(thrice(widened(near + i)), widened(far + i));
    const __m256i out = _mm256_srli_epi16(_mm256_add_epi16(sum, round), 2);
    const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(out), _mm256_extracti128_si256(out, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(into + i), bytes);
  }
}

// ---- colours: 32 pixels at a time, sixteen in each of two registers of 16-bit values

struct Rgb {
  __m256i r, g, b;
};

// `y` from 0, `cb` and `cr` around 0. The factors are libjpeg's less the whole parts, which are added as they are.
STOKER_STEP Rgb converted(__m256i y, __m256i cb, __m256i cr) noexcept {
  const __m256i one = _mm256_set1_epi16(1);
  const __m256i red = _mm256_srai_epi16(
      _mm256_add_epi16(_mm256_mulhi_epi16(_mm256_add_epi16(cr, cr), _mm256_set1_epi16(26345)), one), 1);
  const __m256i blue = _mm256_mulhrs_epi16(cb, _mm256_set1_epi16(-14942 / 2));
  const Wide green = times(alternating(cb, cr), factors(-22554, 18734));
  return {_mm256_add_epi16(_mm256_add_epi16(y, cr), red),
          _mm256_add_epi16(_mm256_sub_epi16(y, cr), scaled_down<16>(green)),
          _mm256_add_epi16(_mm256_add_epi16(y, blue), _mm256_add_epi16(cb, cb))};
}

alignas(16) constexpr std::int8_t kSpread[9][16] = {
    {0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1, 5},
    {-1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1},
    {-1, -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1},
    {-1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10, -1},
    {5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10},
    {-1, 5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1},
    {-1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1, -1},
    {-1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1},
    {10, -1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15},
};

STOKER_STEP __m256i interleaved(const Rgb& rgb, int third) noexcept {
  const auto* spread = reinterpret_cast<const __m128i*>(kSpread[3 * third]);
  return _mm256_or_si256(
      _mm256_or_si256(_mm256_shuffle_epi8(rgb.r, _mm256_broadcastsi128_si256(_mm_load_si128(spread))),
                      _mm256_shuffle_epi8(rgb.g, _mm256_broadcastsi128_si256(_mm_load_si128(spread + 1)))),
      _mm256_shuffle_epi8(rgb.b, _mm256_broadcastsi128_si256(_mm_load_si128(spread + 2))));
}

// 32 pixels of bytes.
STOKER_STEP void store_rgb(const Rgb& rgb, std::uint8_t* into) noexcept {
  // Each has 16 bytes of pixels 0-15 and 16 bytes of pixels 16-31.
  const __m256i a = interleaved(rgb, 0), b = interleaved(rgb, 1), c = interleaved(rgb, 2);
  store32(into, _mm256_permute2x128_si256(a, b, 0x20));
  store32(into + 32, _mm256_permute2x128_si256(c, a, 0x30));
  store32(into + 64, _mm256_permute2x128_si256(b, c, 0x31));
}

STOKER_STEP void convert32(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr,
                           std::uint8_t* into) noexcept {
  const __m256i zero = _mm256_setzero_si256(), center = _mm256_set1_epi16(128);
  const __m256i ys = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(y));
  const __m256i cbs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(cb));
  const __m256i crs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(cr));
  const Rgb low = converted(_mm256_unpacklo_epi8(ys, zero), _mm256_sub_epi16(_mm256_unpacklo_epi8(cbs, zero), center),
                            _mm256_sub_epi16(_mm256_unpacklo_epi8(crs, zero), center));
  const Rgb high = converted(_mm256_unpackhi_epi8(ys, zero), _mm256_sub_epi16(_mm256_unpackhi_epi8(cbs, zero), center),
                             _mm256_sub_epi16(_mm256_unpackhi_epi8(crs, zero), center));
  store_rgb(
      {_mm256_packus_epi16(low.r, high.r), _mm256_packus_epi16(low.g, high.g), _mm256_packus_epi16(low.b, high.b)},
      into);
}

// 32 bytes, to each two of which one of 16 values is added.
STOKER_STEP __m256i added_to_two(__m256i bytes, __m256i more) noexcept {
  const __m256i zero = _mm256_setzero_si256();
  return _mm256_packus_epi16(_mm256_add_epi16(_mm256_unpacklo_epi8(bytes, zero), _mm256_unpacklo_epi16(more, more)),
                             _mm256_add_epi16(_mm256_unpackhi_epi8(bytes, zero), _mm256_unpackhi_epi16(more, more)));
}

STOKER_STEP void convert32_repeated(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr,
                                    std::uint8_t* into) noexcept {
  const __m256i zero = _mm256_setzero_si256(), center = _mm256_set1_epi16(128);
  const __m256i ys = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(y));
  // What Cb and Cr add to the brightness, once for two pixels.
  const Rgb more = converted(zero, _mm256_sub_epi16(widened(cb), center), _mm256_sub_epi16(widened(cr), center));
  store_rgb({added_to_two(ys, more.r), added_to_two(ys, more.g), added_to_two(ys, more.b)}, into);
}

STOKER_JPEG_FAST void to_rgb_repeated(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr,
                                      std::size_t odd, std::size_t count, std::uint8_t* into) noexcept {
  if (odd != 0 && count != 0) {
    kPlainKernels.to_rgb(y++, cb++, cr++, 1, into);
    into += 3;
    --count;
  }
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32) convert32_repeated(y + i, cb + i / 2, cr + i / 2, into + 3 * i);
  if (i == count) return;
  std::uint8_t rest[96];
  convert32_repeated(y + i, cb + i / 2, cr + i / 2, rest);
  std::memcpy(into + 3 * i, rest, 3 * (count - i));
}

STOKER_JPEG_FAST void to_rgb(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, std::size_t count,
                             std::uint8_t* into) noexcept {
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32) convert32(y + i, cb + i, cr + i, into + 3 * i);
  if (i == count) return;
  std::uint8_t rest[96];
  convert32(y + i, cb + i, cr + i, rest);
  std::memcpy(into + 3 * i, rest, 3 * (count - i));
}

}  // namespace

constexpr Kernels kAvx2Kernels = {
    transform, transform_to_4_avx2, transform_to_2_avx2, double_row, double_between, blend, to_rgb, to_rgb_repeated};

}  // namespace stoker::codec::jpeg

#else

namespace stoker::codec::jpeg {
const Kernels kAvx2Kernels = kPlainKernels;
}  // namespace stoker::codec::jpeg

#endif
