#include "stoker/codec/png_filter.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stoker::codec {
namespace {

constexpr std::uint8_t kSub = 1, kUp = 2, kAverage = 3, kPaeth = 4;

std::uint8_t low_byte(int value) noexcept {
  return static_cast<std::uint8_t>(value);
}

// Each loop continues a row whose first `from` bytes, at least one pixel, are done.

void sub_from(std::size_t from, std::uint8_t* row, std::size_t count, std::size_t step) noexcept {
  for (std::size_t i = from; i < count; ++i) row[i] = low_byte(row[i] + row[i - step]);
}

void average_from(std::size_t from, std::uint8_t* row, const std::uint8_t* above, std::size_t count,
                  std::size_t step) noexcept {
  for (std::size_t i = from; i < count; ++i) row[i] = low_byte(row[i] + (row[i - step] + above[i]) / 2);
}

void paeth_from(std::size_t from, std::uint8_t* row, const std::uint8_t* above, std::size_t count,
                std::size_t step) noexcept {
  for (std::size_t i = from; i < count; ++i) {
    row[i] = low_byte(row[i] + paeth(row[i - step], above[i], above[i - step]));
  }
}

void up_from(std::size_t from, std::uint8_t* row, const std::uint8_t* above, std::size_t count) noexcept {
  for (std::size_t i = from; i < count; ++i) row[i] = low_byte(row[i] + above[i]);
}

#if defined(__x86_64__)
// ---- AVX2. Each kernel does whole groups of pixels and returns how many bytes are done; the loops above do the rest.
#define STOKER_AVX2 __attribute__((target("avx2")))

bool has_avx2() noexcept {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

void unfilter_from(std::size_t from, std::uint8_t filter, std::uint8_t* row, const std::uint8_t* above,
                   std::size_t count, std::size_t step) noexcept {
  switch (filter) {
    case kSub:
      return sub_from(from, row, count, step);
    case kUp:
      return up_from(from, row, above, count);
    case kAverage:
      return average_from(from, row, above, count, step);
    case kPaeth:
      return paeth_from(from, row, above, count, step);
    default:
      return;
  }
}

// Pixels of 3 and 6 bytes go by 12 bytes of a register, the others by all 16.
template <int kStep>
constexpr std::size_t kGroupBytes = kStep % 3 == 0 ? 12 : 16;

template <int kStep>
STOKER_AVX2 void store_group(std::uint8_t* at, __m128i group) noexcept {
  if constexpr (kGroupBytes<kStep> == 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at), group);
  } else {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(at), group);
    const int rest = _mm_extract_epi32(group, 2);
    std::memcpy(at + 8, &rest, 4);
  }
}

// A running sum: pixels are added to their right neighbours 1, 2, 4 ... away, then the last pixel of the group before.
template <int kStep>
STOKER_AVX2 std::size_t sub_wide(std::uint8_t* row, std::size_t count) noexcept {
  alignas(16) std::uint8_t spread[16];
  for (std::size_t i = 0; i < 16; ++i) spread[i] = static_cast<std::uint8_t>(kGroupBytes<kStep> - kStep + i % kStep);
  const __m128i last = _mm_load_si128(reinterpret_cast<const __m128i*>(spread));
  __m128i before = _mm_setzero_si128();
  std::size_t i = 0;
  for (; i + 16 <= count; i += kGroupBytes<kStep>) {
    __m128i sum = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + i));
    sum = _mm_add_epi8(sum, _mm_slli_si128(sum, kStep));
    if constexpr (2 * kStep < kGroupBytes<kStep>) sum = _mm_add_epi8(sum, _mm_slli_si128(sum, 2 * kStep));
    if constexpr (4 * kStep < kGroupBytes<kStep>) sum = _mm_add_epi8(sum, _mm_slli_si128(sum, 4 * kStep));
    if constexpr (8 * kStep < kGroupBytes<kStep>) sum = _mm_add_epi8(sum, _mm_slli_si128(sum, 8 * kStep));
    sum = _mm_add_epi8(sum, before);
    store_group<kStep>(row + i, sum);
    before = _mm_shuffle_epi8(sum, last);
  }
  return i;
}

STOKER_AVX2 std::size_t up_wide(std::uint8_t* row, const std::uint8_t* above, std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    auto* const at = reinterpret_cast<__m256i*>(row + i);
    const __m256i up = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(above + i));
    _mm256_storeu_si256(at, _mm256_add_epi8(_mm256_loadu_si256(at), up));
  }
  return i;
}

// One pixel of a group after the other; `done` collects them from its upper end.
template <int kStep, int kPixel = 0>
STOKER_AVX2 inline void average_pixels(__m128i coded, __m128i not_above, __m128i& not_left, __m128i& done) noexcept {
  if constexpr ((kPixel + 1) * kStep <= static_cast<int>(kGroupBytes<kStep>)) {
    // The instruction rounds up; on complements that is down: ~(x + floor((a + b) / 2)) = avg(~a, ~b) - x.
    not_left = _mm_sub_epi8(_mm_avg_epu8(not_left, _mm_srli_si128(not_above, kPixel * kStep)),
                            _mm_srli_si128(coded, kPixel * kStep));
    done = _mm_alignr_epi8(not_left, done, kStep);
    average_pixels<kStep, kPixel + 1>(coded, not_above, not_left, done);
  }
}

template <int kStep>
STOKER_AVX2 std::size_t average_wide(std::uint8_t* row, const std::uint8_t* above, std::size_t count) noexcept {
  const __m128i ones = _mm_set1_epi8(-1);
  __m128i not_left = ones;
  std::size_t i = 0;
  for (; i + 16 <= count; i += kGroupBytes<kStep>) {
    const __m128i coded = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + i));
    const __m128i up = _mm_loadu_si128(reinterpret_cast<const __m128i*>(above + i));
    __m128i done = ones;
    average_pixels<kStep>(coded, _mm_xor_si128(up, ones), not_left, done);
    store_group<kStep>(row + i, _mm_srli_si128(_mm_xor_si128(done, ones), 16 - static_cast<int>(kGroupBytes<kStep>)));
  }
  return i;
}

// Values as 16 bits, of which the upper byte stays zero where only bytes are added.
struct PaethGroup {
  __m128i above;
  __m128i base;  // 3 * corner - above
  __m128i coded;
  __m128i coded_corner;  // coded + corner, as bytes
};

// The sums with `coded` are made beside the comparisons, so that four steps lead from one pixel to the next.
template <int kStep, int kPixel = 0>
STOKER_AVX2 inline void paeth_pixels(const PaethGroup& group, __m128i& left, __m128i& done) noexcept {
  if constexpr ((kPixel + 1) * kStep <= 8) {
    constexpr int kAt = 2 * kPixel * kStep;
    const __m128i above = _mm_srli_si128(group.above, kAt);
    const __m128i coded = _mm_srli_si128(group.coded, kAt);
    const __m128i threshold = _mm_sub_epi16(_mm_srli_si128(group.base, kAt), left);
    const __m128i low = _mm_min_epi16(left, above), high = _mm_max_epi16(left, above);
    const __m128i keeps_corner = _mm_cmpgt_epi16(high, threshold), keeps_inner = _mm_cmpgt_epi16(threshold, low);
    const __m128i inner =
        _mm_blendv_epi8(_mm_add_epi8(low, coded), _mm_srli_si128(group.coded_corner, kAt), keeps_corner);
    left = _mm_blendv_epi8(_mm_add_epi8(high, coded), inner, keeps_inner);
    done = _mm_alignr_epi8(left, done, 2 * kStep);
    paeth_pixels<kStep, kPixel + 1>(group, left, done);
  }
}

template <int kStep>
STOKER_AVX2 std::size_t paeth_wide(std::uint8_t* row, const std::uint8_t* above, std::size_t count) noexcept {
  constexpr int kBytes = 8 / kStep * kStep;
  const auto widened = [](const std::uint8_t* at) STOKER_AVX2 {
    return _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)));
  };
  __m128i left = _mm_setzero_si128(), above_before = left;
  std::size_t i = 0;
  for (; i + 8 <= count; i += kBytes) {
    PaethGroup group;
    group.above = widened(above + i);
    group.coded = widened(row + i);
    // The last pixel of the group before lies at 2 * (kBytes - kStep); it becomes the first corner.
    const __m128i shifted = kBytes == 8 ? above_before : _mm_slli_si128(above_before, 16 - 2 * kBytes);
    const __m128i corner = _mm_alignr_epi8(group.above, shifted, 16 - 2 * kStep);
    group.base = _mm_sub_epi16(_mm_add_epi16(corner, _mm_add_epi16(corner, corner)), group.above);
    group.coded_corner = _mm_add_epi8(corner, group.coded);
    __m128i done = left;
    paeth_pixels<kStep>(group, left, done);
    const __m128i bytes = _mm_packus_epi16(kBytes == 8 ? done : _mm_srli_si128(done, 16 - 2 * kBytes), done);
    if constexpr (kBytes == 8) {
      _mm_storel_epi64(reinterpret_cast<__m128i*>(row + i), bytes);
    } else {
      const int four = _mm_cvtsi128_si32(bytes), two = _mm_extract_epi16(bytes, 2);
      std::memcpy(row + i, &four, 4);
      std::memcpy(row + i + 4, &two, 2);
    }
    above_before = group.above;
  }
  return i;
}

// ---- Four rows at once, for pixels of two bytes (16-bit gray). Paeth and Average go from left to right, but the row
// below may follow one pixel behind: at step s row r is at pixel s - r, and what lies above it was made the step
// before.

struct FourRows {
  std::uint8_t filters[4];
  std::uint8_t* rows[4];
  const std::uint8_t* above;  // the first row

  const std::uint8_t* above_row(int r) const noexcept { return r == 0 ? above : rows[r - 1]; }
};

// All-ones in the two 16-bit lanes of each row that has the filter.
STOKER_AVX2 __m128i lanes_with(const FourRows& four, std::uint8_t filter) noexcept {
  const auto lane = [&](int r) { return four.filters[r] == filter ? -1 : 0; };
  return _mm_setr_epi32(lane(0), lane(1), lane(2), lane(3));
}

struct StairStep {
  __m128i left, above;  // what the step before made, and what lay above it
  __m128i has_paeth, has_up, has_sub, has_average;
};

// `first_above` is the pixel above the first row, in the two lowest lanes. kOthers: rows may be other than Paeth and
// Up.
template <bool kOthers>
STOKER_AVX2 inline __m128i step_down(StairStep& s, __m128i coded, __m128i first_above) noexcept {
  const __m128i corner = s.above, left = s.left;
  const __m128i above = _mm_blend_epi16(_mm_slli_si128(left, 4), first_above, 0x03);
  const __m128i three = _mm_add_epi16(corner, _mm_add_epi16(corner, corner));
  const __m128i threshold = _mm_sub_epi16(_mm_sub_epi16(three, left), above);
  const __m128i low = _mm_min_epi16(left, above), high = _mm_max_epi16(left, above);
  const __m128i keeps_corner = _mm_cmpgt_epi16(high, threshold), keeps_inner = _mm_cmpgt_epi16(threshold, low);
  const __m128i inner = _mm_blendv_epi8(_mm_add_epi8(low, coded), _mm_add_epi8(corner, coded), keeps_corner);
  const __m128i nearest = _mm_blendv_epi8(_mm_add_epi8(high, coded), inner, keeps_inner);
  __m128i other = above;
  if constexpr (kOthers) {
    const __m128i average = _mm_srli_epi16(_mm_add_epi16(left, above), 1);
    other = _mm_or_si128(_mm_and_si128(above, s.has_up),
                         _mm_or_si128(_mm_and_si128(left, s.has_sub), _mm_and_si128(average, s.has_average)));
  }
  s.left = _mm_blendv_epi8(_mm_add_epi8(other, coded), nearest, s.has_paeth);
  s.above = above;
  return s.left;
}

// Starts at pixel 3 of the first row, with 3 - r pixels of each row done; returns the first row's next pixel.
template <bool kOthers>
STOKER_AVX2 std::size_t stairs_wide(const FourRows& four, std::size_t pixels) noexcept {
  const auto pixel_of = [](const std::uint8_t* row, int x) { return row[2 * x] | row[2 * x + 1] << 16; };
  const auto stairs = [&](auto row_of) STOKER_AVX2 {
    return _mm_setr_epi32(pixel_of(row_of(0), 2), pixel_of(row_of(1), 1), pixel_of(row_of(2), 0), 0);
  };
  StairStep s;
  s.left = stairs([&](int r) { return four.rows[r]; });
  s.above = stairs([&](int r) { return four.above_row(r); });
  s.has_paeth = lanes_with(four, kPaeth);
  s.has_up = lanes_with(four, kUp);
  s.has_sub = lanes_with(four, kSub);
  s.has_average = lanes_with(four, kAverage);
  const __m128i zero = _mm_setzero_si128();
  const __m128i pair_rows = _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);

  std::size_t x = 3;
  for (; x + 8 <= pixels; x += 8) {
    __m128i* at[4];
    __m128i in[4];
    for (std::size_t r = 0; r < 4; ++r) {
      at[r] = reinterpret_cast<__m128i*>(four.rows[r] + 2 * (x - r));
      in[r] = _mm_loadu_si128(at[r]);
    }
    const __m128i first_above = _mm_loadu_si128(reinterpret_cast<const __m128i*>(four.above + 2 * x));
    const __m128i low01 = _mm_unpacklo_epi16(in[0], in[1]), high01 = _mm_unpackhi_epi16(in[0], in[1]);
    const __m128i low23 = _mm_unpacklo_epi16(in[2], in[3]), high23 = _mm_unpackhi_epi16(in[2], in[3]);
    // Two steps each, and the pixels above four steps each.
    const __m128i coded[4] = {_mm_unpacklo_epi32(low01, low23), _mm_unpackhi_epi32(low01, low23),
                              _mm_unpacklo_epi32(high01, high23), _mm_unpackhi_epi32(high01, high23)};
    const __m128i above_low = _mm_unpacklo_epi8(first_above, zero), above_high = _mm_unpackhi_epi8(first_above, zero);
    __m128i done[4];
    for (int i = 0; i < 4; ++i) {
      const __m128i above = i < 2 ? above_low : above_high;
      const __m128i even = i % 2 == 0 ? above : _mm_srli_si128(above, 8);
      const __m128i first = step_down<kOthers>(s, _mm_unpacklo_epi8(coded[i], zero), even);
      const __m128i second = step_down<kOthers>(s, _mm_unpackhi_epi8(coded[i], zero), _mm_srli_si128(even, 4));
      done[i] = _mm_shuffle_epi8(_mm_packus_epi16(first, second), pair_rows);
    }
    const __m128i a = _mm_unpacklo_epi32(done[0], done[1]), b = _mm_unpackhi_epi32(done[0], done[1]);
    const __m128i c = _mm_unpacklo_epi32(done[2], done[3]), d = _mm_unpackhi_epi32(done[2], done[3]);
    _mm_storeu_si128(at[0], _mm_unpacklo_epi64(a, c));
    _mm_storeu_si128(at[1], _mm_unpackhi_epi64(a, c));
    _mm_storeu_si128(at[2], _mm_unpacklo_epi64(b, d));
    _mm_storeu_si128(at[3], _mm_unpackhi_epi64(b, d));
  }
  return x;
}

// Pays where at least two of the rows would go pixel by pixel.
bool suits_stairs(const FourRows& four, std::size_t pixels) noexcept {
  const auto is_slow = [](std::uint8_t filter) { return filter == kPaeth || filter == kAverage; };
  const auto is_known = [](std::uint8_t filter) { return filter <= kPaeth; };
  return pixels >= 16 && std::count_if(four.filters, four.filters + 4, is_slow) >= 2 &&
         std::all_of(four.filters, four.filters + 4, is_known);
}

void unfilter_stairs(const FourRows& four, std::size_t pixels) noexcept {
  for (int r = 0; r < 3; ++r) {
    unfilter_portable(four.filters[r], four.rows[r], four.above_row(r), 2 * (3 - static_cast<std::size_t>(r)), 2);
  }
  const bool others = std::any_of(four.filters, four.filters + 4, [](auto f) { return f != kPaeth && f != kUp; });
  const std::size_t x = others ? stairs_wide<true>(four, pixels) : stairs_wide<false>(four, pixels);
  for (int r = 0; r < 4; ++r) {
    const std::size_t from = 2 * (x - static_cast<std::size_t>(r));
    unfilter_from(from, four.filters[r], four.rows[r], four.above_row(r), 2 * pixels, 2);
  }
}

template <int kStep>
bool unfilter_wide(std::uint8_t filter, std::uint8_t* row, const std::uint8_t* above, std::size_t count) noexcept {
  // A row too short for one group has no pixel done; the portable loops want one.
  if (count < 16 || (above == nullptr && filter != kSub)) {
    return unfilter_portable(filter, row, above, count, kStep);
  }
  std::size_t done = 0;
  switch (filter) {
    case kSub:
      done = sub_wide<kStep>(row, count);
      break;
    case kUp:
      done = up_wide(row, above, count);
      break;
    case kAverage:
      done = average_wide<kStep>(row, above, count);
      break;
    case kPaeth:
      done = paeth_wide<kStep>(row, above, count);
      break;
    default:
      return filter == 0;
  }
  unfilter_from(done, filter, row, above, count, kStep);
  return true;
}
#endif

}  // namespace

std::uint64_t filter_row(std::uint8_t filter, const std::uint8_t* row, const std::uint8_t* above, std::size_t count,
                         std::size_t step, std::uint8_t* out) noexcept {
  // The loops are plain so that the compiler vectorizes them.
  for (std::size_t i = 0; i < step; ++i) {  // the first pixel has no left neighbour
    const int guess = filter == kUp || filter == kPaeth ? above[i] : filter == kAverage ? above[i] / 2 : 0;
    out[i] = low_byte(row[i] - guess);
  }
  switch (filter) {
    case kSub:
      for (std::size_t i = step; i < count; ++i) out[i] = low_byte(row[i] - row[i - step]);
      break;
    case kUp:
      for (std::size_t i = step; i < count; ++i) out[i] = low_byte(row[i] - above[i]);
      break;
    case kAverage:
      for (std::size_t i = step; i < count; ++i) out[i] = low_byte(row[i] - (row[i - step] + above[i]) / 2);
      break;
    case kPaeth:
      for (std::size_t i = step; i < count; ++i) {
        const auto a = static_cast<std::int16_t>(row[i - step]), b = static_cast<std::int16_t>(above[i]);
        const auto c = static_cast<std::int16_t>(above[i - step]);
        const auto low = std::min(a, b), high = std::max(a, b);
        const auto threshold = static_cast<std::int16_t>(3 * c - (a + b));
        const auto inner = high <= threshold ? low : c;
        out[i] = low_byte(row[i] - (threshold <= low ? high : inner));
      }
      break;
    default:
      std::memcpy(out, row, count);
  }
  std::uint64_t sum = 0;
  for (std::size_t begin = 0; begin < count; begin += 4096) {  // 32-bit sums vectorize better
    const std::size_t end = std::min(count, begin + 4096);
    std::uint32_t part = 0;
    for (std::size_t i = begin; i < end; ++i) part += std::min<std::uint8_t>(out[i], low_byte(-out[i]));
    sum += part;
  }
  return sum;
}

bool unfilter_portable(std::uint8_t filter, std::uint8_t* row, const std::uint8_t* above, std::size_t count,
                       std::size_t step) noexcept {
  const std::size_t head = std::min(step, count);
  switch (filter) {
    case 0:
      return true;
    case kSub:
      sub_from(head, row, count, step);
      return true;
    case kUp:
      if (above != nullptr) up_from(0, row, above, count);
      return true;
    case kAverage:
      if (above == nullptr) {
        for (std::size_t i = head; i < count; ++i) row[i] = low_byte(row[i] + row[i - step] / 2);
        return true;
      }
      for (std::size_t i = 0; i < head; ++i) row[i] = low_byte(row[i] + above[i] / 2);
      average_from(head, row, above, count, step);
      return true;
    case kPaeth:
      if (above == nullptr) {
        sub_from(head, row, count, step);
        return true;
      }
      up_from(0, row, above, head);
      paeth_from(head, row, above, count, step);
      return true;
    default:
      return false;
  }
}

bool unfilter(std::uint8_t filter, std::uint8_t* row, const std::uint8_t* above, std::size_t count,
              std::size_t step) noexcept {
#if defined(__x86_64__)
  if (has_avx2()) {
    switch (step) {
      case 1:
        return unfilter_wide<1>(filter, row, above, count);
      case 2:
        return unfilter_wide<2>(filter, row, above, count);
      case 3:
        return unfilter_wide<3>(filter, row, above, count);
      case 4:
        return unfilter_wide<4>(filter, row, above, count);
      case 6:
        return unfilter_wide<6>(filter, row, above, count);
      case 8:
        return unfilter_wide<8>(filter, row, above, count);
      default:
        break;
    }
  }
#endif
  return unfilter_portable(filter, row, above, count, step);
}

bool unfilter_rows(std::uint8_t* first, std::uint32_t rows, const std::uint8_t* above, std::size_t count,
                   std::size_t step) noexcept {
  std::uint8_t* at = first;
  for (std::uint32_t y = 0; y < rows; ++y) {
#if defined(__x86_64__)
    if (step == 2 && above != nullptr && rows - y >= 4 && has_avx2()) {
      FourRows four{{}, {}, above};
      for (std::size_t r = 0; r < 4; ++r) {
        four.filters[r] = at[r * (count + 1)];
        four.rows[r] = at + r * (count + 1) + 1;
      }
      if (suits_stairs(four, count / 2)) {
        unfilter_stairs(four, count / 2);
        above = four.rows[3];
        at += 4 * (count + 1);
        y += 3;
        continue;
      }
    }
#endif
    if (!unfilter(*at, at + 1, above, count, step)) return false;
    above = at + 1;
    at += count + 1;
  }
  return true;
}

}  // namespace stoker::codec
