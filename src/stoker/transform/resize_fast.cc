#include "stoker/transform/resize_fast.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "stoker/base/round.h"
#include "stoker/transform/take.h"

namespace stoker::transform {
namespace {

constexpr double kMostShrink = 3;
constexpr std::size_t kSlack = 32;  // bytes that kernels may read and write behind a row of ours

// Eight pixels at a time; their shares lie in the order in which two registers take them, four times each.
constexpr std::size_t kGroup = 8;
constexpr std::size_t kPlaceInGroup[kGroup] = {0, 1, 4, 5, 2, 3, 6, 7};

// The first of two neighbours and the share of the second, in 2^-15.
struct Pair {
  std::int64_t first;
  std::int16_t share;
};
Pair pair_at(const Extent& in, std::uint32_t out, std::uint32_t at) noexcept {
  const double place = in.begin + (at + 0.5) * in.length / out - 0.5;
  if (place <= 0) return {0, 0};
  const std::int64_t first = std::min(static_cast<std::int64_t>(place), std::int64_t{in.size} - 1);
  if (first + 1 == in.size) return {first, 0};
  return {first, static_cast<std::int16_t>(std::min(32767.0, (place - static_cast<double>(first)) * 32768))};
}

std::uint8_t blend(std::uint8_t a, std::uint8_t b, std::int16_t share) noexcept {
  return static_cast<std::uint8_t>(a + (((b - a) * share + (1 << 14)) >> 15));
}

void blend_rows(const std::uint8_t* a, const std::uint8_t* b, std::int16_t share, std::size_t count,
                std::uint8_t* into) noexcept {
  for (std::size_t i = 0; i < count; ++i) into[i] = blend(a[i], b[i], share);
}

template <std::size_t kChannels>
void blend_pixels(const std::uint8_t* row, const std::uint32_t* starts, const std::int16_t* shares, std::size_t first,
                  std::size_t count, std::uint8_t* into) noexcept {
  for (std::size_t i = first; i < count; ++i) {
    const std::uint8_t* const at = row + starts[i];
    const std::int16_t share = shares[(i / kGroup * kGroup + kPlaceInGroup[i % kGroup]) * 4];
    for (std::size_t c = 0; c < kChannels; ++c) into[i * kChannels + c] = blend(at[c], at[kChannels + c], share);
  }
}

#if defined(__x86_64__)
#define STOKER_WIDE __attribute__((target("avx2")))

STOKER_WIDE inline __m256i blend_words(__m256i a, __m256i b, __m256i share) noexcept {
  return _mm256_add_epi16(a, _mm256_mulhrs_epi16(_mm256_sub_epi16(b, a), share));
}

STOKER_WIDE inline void blend_32(const std::uint8_t* a, const std::uint8_t* b, __m256i share,
                                 std::uint8_t* into) noexcept {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i as = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a));
  const __m256i bs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b));
  const __m256i low = blend_words(_mm256_unpacklo_epi8(as, zero), _mm256_unpacklo_epi8(bs, zero), share);
  const __m256i high = blend_words(_mm256_unpackhi_epi8(as, zero), _mm256_unpackhi_epi8(bs, zero), share);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(into), _mm256_packus_epi16(low, high));
}

// At least 32 of them.
STOKER_WIDE void blend_rows_wide(const std::uint8_t* a, const std::uint8_t* b, std::int16_t share, std::size_t count,
                                 std::uint8_t* into) noexcept {
  const __m256i shares = _mm256_set1_epi16(share);
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32) blend_32(a + i, b + i, shares, into + i);
  if (i < count) blend_32(a + count - 32, b + count - 32, shares, into + count - 32);  // overlaps what is done
}

STOKER_WIDE inline __m128i load_two(const std::uint8_t* a, const std::uint8_t* b) noexcept {
  return _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(a)),
                            _mm_loadl_epi64(reinterpret_cast<const __m128i*>(b)));
}
STOKER_WIDE inline __m256i load_four(const std::uint8_t* row, const std::uint32_t* starts) noexcept {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load_two(row + starts[0], row + starts[1])),
                                 load_two(row + starts[4], row + starts[5]), 1);
}

// RGB; whole groups, of which the first `count` pixels are wanted: reads two bytes behind the last pair of each, and
// writes behind the last pixel.
STOKER_WIDE void blend_pixels_wide(const std::uint8_t* row, const std::uint32_t* starts, const std::int16_t* shares,
                                   std::size_t count, std::uint8_t* into) noexcept {
  constexpr char n = -1;
  const __m256i of_first = _mm256_setr_epi8(0, n, 1, n, 2, n, n, n, 8, n, 9, n, 10, n, n, n,  //
                                            0, n, 1, n, 2, n, n, n, 8, n, 9, n, 10, n, n, n);
  const __m256i of_second = _mm256_setr_epi8(3, n, 4, n, 5, n, n, n, 11, n, 12, n, 13, n, n, n,  //
                                             3, n, 4, n, 5, n, n, n, 11, n, 12, n, 13, n, n, n);
  const __m256i close_up = _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, n, n, n, n,  //
                                            0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, n, n, n, n);
  for (std::size_t i = 0; i < count; i += kGroup, shares += kGroup * 4, into += kGroup * 3) {
    const __m256i a = load_four(row, starts + i), b = load_four(row, starts + i + 2);
    const __m256i share_a = _mm256_load_si256(reinterpret_cast<const __m256i*>(shares));
    const __m256i share_b = _mm256_load_si256(reinterpret_cast<const __m256i*>(shares) + 1);
    const __m256i out_a = blend_words(_mm256_shuffle_epi8(a, of_first), _mm256_shuffle_epi8(a, of_second), share_a);
    const __m256i out_b = blend_words(_mm256_shuffle_epi8(b, of_first), _mm256_shuffle_epi8(b, of_second), share_b);
    const __m256i pixels = _mm256_shuffle_epi8(_mm256_packus_epi16(out_a, out_b), close_up);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(into), _mm256_castsi256_si128(pixels));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(into + 12), _mm256_extracti128_si256(pixels, 1));
  }
}
#endif

}  // namespace

bool suits_fast_resize(const Resizing& r, std::uint32_t channels) noexcept {
  return r.filter == Filter::bilinear && (channels == 1 || channels == 3) &&
         r.across().length < kMostShrink * r.out_width && r.down().length < kMostShrink * r.out_height;
}

Result FastResizer::prepare(const Part<std::uint8_t>& source, const Resizing& r, Scratch& scratch) noexcept {
  const Rect& keep = r.keep;
  source_ = source;
  channels_ = source.channels;
  count_ = keep.width;
  const std::size_t room = round_up(count_, kGroup);
  const Pair leftmost = pair_at(r.across(), r.out_width, keep.x);
  const Pair rightmost = pair_at(r.across(), r.out_width, keep.x + keep.width - 1);
  left_ = leftmost.first;
  const std::int64_t right = rightmost.first + (rightmost.share != 0 ? 2 : 1);
  in_elements_ = static_cast<std::size_t>(right - left_) * channels_;
  across_ = take<std::uint32_t>(scratch, room);
  across_share_ = take<std::int16_t>(scratch, room * 4);
  down_ = take<std::int64_t>(scratch, keep.height);
  down_share_ = take<std::int16_t>(scratch, keep.height);
  between_ = take<std::uint8_t>(scratch, in_elements_ + channels_ + kSlack);
  line_ = take<std::uint8_t>(scratch, room * channels_ + kSlack);
  if (across_ == nullptr || across_share_ == nullptr || down_ == nullptr || down_share_ == nullptr ||
      between_ == nullptr || line_ == nullptr) {
    return failed(Code::no_memory, "no room to resize the image");
  }
  std::memset(between_ + in_elements_, 0, channels_ + kSlack);  // read, with a share of nothing
  for (std::size_t i = 0; i < room; ++i) {
    const Pair pair = i < count_ ? pair_at(r.across(), r.out_width, keep.x + static_cast<std::uint32_t>(i)) : rightmost;
    across_[i] = static_cast<std::uint32_t>(static_cast<std::size_t>(pair.first - left_) * channels_);
    std::fill_n(across_share_ + (i / kGroup * kGroup + kPlaceInGroup[i % kGroup]) * 4, 4, pair.share);
  }
  for (std::uint32_t y = 0; y < keep.height; ++y) {
    const Pair pair = pair_at(r.down(), r.out_height, keep.y + y);
    down_[y] = pair.first;
    down_share_[y] = pair.share;
  }
  return {};
}

const std::uint8_t* FastResizer::row(std::uint32_t y) noexcept {
  const std::uint8_t* const upper = source_.at(left_, down_[y]);
  const std::int16_t share = down_share_[y];
  const std::uint8_t* const lower = share == 0 ? upper : upper + source_.stride;
#if defined(__x86_64__)
  const bool wide = wide_kernels();
  if (wide && in_elements_ >= 32) {
    blend_rows_wide(upper, lower, share, in_elements_, between_);
  } else {
    blend_rows(upper, lower, share, in_elements_, between_);
  }
  if (wide && channels_ == 3) {
    blend_pixels_wide(between_, across_, across_share_, count_, line_);
    return line_;
  }
#else
  blend_rows(upper, lower, share, in_elements_, between_);
#endif
  if (channels_ == 3) {
    blend_pixels<3>(between_, across_, across_share_, 0, count_, line_);
  } else {
    blend_pixels<1>(between_, across_, across_share_, 0, count_, line_);
  }
  return line_;
}

}  // namespace stoker::transform
