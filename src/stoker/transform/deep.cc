#include "stoker/transform/deep.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "stoker/transform/take.h"

namespace stoker::transform {
namespace {

constexpr Result kNoMemory = failed(Code::no_memory, "no room to resize the picture: raise memory_limit");

float load_word(const std::byte* at) noexcept {
  std::uint16_t value = 0;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// One body for both compilations of a loop. NaN stays NaN, as with std::clamp.
[[gnu::always_inline]] inline float windowed(float value, float shift, float scale) noexcept {
  value = (value - shift) * scale;
  value = value < 0.0F ? 0.0F : value;
  return value > 1.0F ? 1.0F : value;
}

[[gnu::always_inline]] inline void level_loop(const std::byte* __restrict words, std::size_t count,
                                              const Levels& levels, float* __restrict into) noexcept {
  const float shift = levels.shift, scale = levels.scale;
  switch (levels.what) {
    case Levels::What::as_stored:
      for (std::size_t i = 0; i < count; ++i) into[i] = load_word(words + 2 * i);
      return;
    case Levels::What::share:
      for (std::size_t i = 0; i < count; ++i) into[i] = load_word(words + 2 * i) / 65535.0F;
      return;
    case Levels::What::window:
      for (std::size_t i = 0; i < count; ++i) into[i] = windowed(load_word(words + 2 * i), shift, scale);
      return;
  }
}

[[gnu::always_inline]] inline void window_loop(const float* from, std::size_t count, float shift, float scale,
                                               float* into) noexcept {
  for (std::size_t i = 0; i < count; ++i) into[i] = windowed(from[i], shift, scale);
}

[[gnu::always_inline]] inline void normalize_loop(const float* from, std::size_t count, const float* mean,
                                                  const float* std, float* into) noexcept {
  for (std::size_t i = 0; i < count; ++i) into[i] = (from[i] - mean[i]) / std[i];
}

#if defined(__x86_64__)
#define STOKER_AVX2 __attribute__((target("avx2")))

STOKER_AVX2 void level_wide(const std::byte* words, std::size_t count, const Levels& levels, float* into) noexcept {
  level_loop(words, count, levels, into);
}
STOKER_AVX2 void window_wide(const float* from, std::size_t count, float shift, float scale, float* into) noexcept {
  window_loop(from, count, shift, scale, into);
}
STOKER_AVX2 void normalize_wide(const float* from, std::size_t count, const float* mean, const float* std,
                                float* into) noexcept {
  normalize_loop(from, count, mean, std, into);
}

// Where four rows come from: eight values at `i`, or one.
struct FloatRows {
  const float* rows[4];

  STOKER_AVX2 __m256 eight(int r, std::size_t i) const noexcept { return _mm256_loadu_ps(rows[r] + i); }
  float one(int r, std::size_t i) const noexcept { return rows[r][i]; }
};

template <Levels::What kWhat>
struct WordRows {
  const std::byte* rows[4];
  float shift, scale;

  STOKER_AVX2 __m256 eight(int r, std::size_t i) const noexcept {
    const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[r] + 2 * i));
    __m256 values = _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(words));
    if constexpr (kWhat == Levels::What::share) values = _mm256_div_ps(values, _mm256_set1_ps(65535.0F));
    if constexpr (kWhat == Levels::What::window) {
      values = _mm256_mul_ps(_mm256_sub_ps(values, _mm256_set1_ps(shift)), _mm256_set1_ps(scale));
      // In this order of operands NaN stays NaN.
      values = _mm256_min_ps(_mm256_set1_ps(1.0F), _mm256_max_ps(_mm256_setzero_ps(), values));
    }
    return values;
  }
  float one(int r, std::size_t i) const noexcept {
    float value = 0;
    level_loop(rows[r] + 2 * i, 1, {kWhat, shift, scale}, &value);
    return value;
  }
};

// Four rows to one of quadruples, which the pass along rows takes as vectors.
template <typename Rows>
STOKER_AVX2 void interleave(const Rows& from, std::size_t count, float* into) noexcept {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 a = from.eight(0, i), b = from.eight(1, i), c = from.eight(2, i), d = from.eight(3, i);
    const __m256 ab_low = _mm256_unpacklo_ps(a, b), ab_high = _mm256_unpackhi_ps(a, b);
    const __m256 cd_low = _mm256_unpacklo_ps(c, d), cd_high = _mm256_unpackhi_ps(c, d);
    // Columns k and k + 4 in the halves of the kth.
    const __m256 columns[4] = {_mm256_shuffle_ps(ab_low, cd_low, 0x44), _mm256_shuffle_ps(ab_low, cd_low, 0xEE),
                               _mm256_shuffle_ps(ab_high, cd_high, 0x44), _mm256_shuffle_ps(ab_high, cd_high, 0xEE)};
    for (std::size_t k = 0; k < 4; ++k) {
      _mm_store_ps(into + (i + k) * 4, _mm256_castps256_ps128(columns[k]));
      _mm_store_ps(into + (i + k + 4) * 4, _mm256_extractf128_ps(columns[k], 1));
    }
  }
  for (; i < count; ++i) {
    for (int r = 0; r < 4; ++r) into[i * 4 + static_cast<std::size_t>(r)] = from.one(r, i);
  }
}

void interleave(const std::byte* const (&rows)[4], const Levels& levels, std::size_t count, float* into) noexcept {
  using What = Levels::What;
  const auto [a, b, c, d] = rows;
  switch (levels.what) {
    case What::as_stored:
      return interleave(WordRows<What::as_stored>{{a, b, c, d}, 0, 0}, count, into);
    case What::share:
      return interleave(WordRows<What::share>{{a, b, c, d}, 0, 0}, count, into);
    case What::window:
      return interleave(WordRows<What::window>{{a, b, c, d}, levels.shift, levels.scale}, count, into);
  }
}

// One element of four output rows. Taps beyond its own have weight zero, which adds nothing to a finite value.
template <std::uint32_t kTaps>
STOKER_AVX2 inline __m128 sum_of_taps(const float* at, std::size_t step, const double* k, std::uint32_t taps) noexcept {
  __m256d sum = _mm256_setzero_pd();
#pragma GCC unroll 8
  for (std::uint32_t t = 0; t < (kTaps == 0 ? taps : kTaps); ++t) {
    sum = _mm256_add_pd(sum, _mm256_mul_pd(_mm256_cvtps_pd(_mm_load_ps(at + t * step)), _mm256_broadcast_sd(k + t)));
  }
  return _mm256_cvtpd_ps(sum);
}

// kTaps is that of every element; 0: `taps` is. Writes up to three elements beyond `count`.
template <std::uint32_t kTaps>
STOKER_AVX2 void across_four(const float* quad, std::size_t step, const ElementTaps* elements, std::size_t count,
                             std::uint32_t taps, const double* k, float* const (&into)[4]) noexcept {
  const auto [first, second, third, fourth] = into;
  for (std::size_t i = 0; i < count; i += 4) {
    const ElementTaps* const e = elements + i;
    __m128 a = sum_of_taps<kTaps>(quad + e[0].begin, step, k + e[0].weights, taps);
    __m128 b = sum_of_taps<kTaps>(quad + e[1].begin, step, k + e[1].weights, taps);
    __m128 c = sum_of_taps<kTaps>(quad + e[2].begin, step, k + e[2].weights, taps);
    __m128 d = sum_of_taps<kTaps>(quad + e[3].begin, step, k + e[3].weights, taps);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_store_ps(first + i, a);
    _mm_store_ps(second + i, b);
    _mm_store_ps(third + i, c);
    _mm_store_ps(fourth + i, d);
  }
}

constexpr decltype(&across_four<0>) kAcross[] = {across_four<0>, across_four<1>, across_four<2>,
                                                 across_four<3>, across_four<4>, across_four<5>,
                                                 across_four<6>, across_four<7>, across_four<8>};

// Reads and writes up to fifteen elements beyond `count`.
STOKER_AVX2 void down_wide(const float* const* rows, std::uint32_t taps, const double* k, std::size_t count,
                           float* into) noexcept {
  for (std::size_t i = 0; i < count; i += 16) {
    __m256d sums[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
    for (std::uint32_t t = 0; t < taps; ++t) {
      const __m256d weight = _mm256_broadcast_sd(k + t);
      for (std::size_t v = 0; v < 4; ++v) {
        const __m256d values = _mm256_cvtps_pd(_mm_load_ps(rows[t] + i + v * 4));
        sums[v] = _mm256_add_pd(sums[v], _mm256_mul_pd(values, weight));
      }
    }
    for (std::size_t v = 0; v < 4; ++v) _mm_store_ps(into + i + v * 4, _mm256_cvtpd_ps(sums[v]));
  }
}
#endif

constexpr std::size_t kLane = 16;  // floats that a row is rounded up to
std::size_t padded(std::size_t elements) noexcept {
  return (elements + kLane - 1) / kLane * kLane;
}

}  // namespace

void level_row(const std::byte* words, std::size_t count, const Levels& levels, float* into) noexcept {
#if defined(__x86_64__)
  if (wide_kernels()) return level_wide(words, count, levels, into);
#endif
  level_loop(words, count, levels, into);
}

void window_row(const float* from, std::size_t count, float shift, float scale, float* into) noexcept {
#if defined(__x86_64__)
  if (wide_kernels()) return window_wide(from, count, shift, scale, into);
#endif
  window_loop(from, count, shift, scale, into);
}

void normalize_row(const float* from, std::size_t count, const float* mean, const float* std, float* into) noexcept {
#if defined(__x86_64__)
  if (wide_kernels()) return normalize_wide(from, count, mean, std, into);
#endif
  normalize_loop(from, count, mean, std, into);
}

Result DeepResizer::prepare(const DeepPart& source, const Levels& levels, const Resizing& resizing,
                            Scratch& scratch) noexcept {
  source_ = source;
  levels_ = levels;
  resizing_ = resizing;
  need_ = needed(resizing);
  in_elements_ = std::size_t{need_.width} * source.channels;
  out_elements_ = std::size_t{resizing.keep.width} * source.channels;
  wide_ = wide_kernels() && resizing.filter != Filter::nearest && resizing.in_width != resizing.out_width;
  if (wide_) return prepare_wide(scratch) ? Result{} : kNoMemory;

  float* const loaded = take<float>(scratch, in_elements_ * need_.height);
  if (loaded == nullptr) return kNoMemory;
  for (std::uint32_t y = 0; y < need_.height; ++y) {
    level_row(source.at(need_.x, std::int64_t{need_.y} + y), in_elements_, levels, loaded + y * in_elements_);
  }
  const Part<float> part{loaded, in_elements_, need_.x, need_.y, need_.width, need_.height, source.channels};
  return plain_.prepare(part, resizing, scratch);
}

bool DeepResizer::prepare_wide(Scratch& scratch) noexcept {
  const Resizing& r = resizing_;
  const Rect& keep = r.keep;
  columns_ = r.in_height != r.out_height;
  columns_first_ = columns_ && columns_first(r);
  next_ = need_.y;
  made_ = 0;

  if (!make_axis(r.in_width, r.out_width, r.filter, keep.x, keep.width, r.mirrored, horizontal_, scratch)) return false;
  const std::uint32_t channels = source_.channels;
  out_stride_ = padded(out_elements_);
  elements_ = take<ElementTaps>(scratch, out_stride_);
  if (elements_ == nullptr) return false;
  taps_ = 0;
  for (std::uint32_t i = 0, e = 0; i < keep.width; ++i) {
    const std::uint32_t begin = horizontal_.taps[i] == 0 ? 0 : (horizontal_.start[i] - need_.x) * channels;
    for (std::uint32_t c = 0; c < channels; ++c, ++e) elements_[e] = {(begin + c) * 4, i * horizontal_.stride};
    taps_ = std::max(taps_, horizontal_.taps[i]);
  }
  std::fill(elements_ + out_elements_, elements_ + out_stride_, ElementTaps{});
  const std::size_t past_the_end = std::size_t{taps_} * channels;
  quad_ = take<float>(scratch, (in_elements_ + past_the_end) * 4);
  lines_ = take<float>(scratch, out_stride_ * 4);
  if (quad_ == nullptr || lines_ == nullptr) return false;
  std::fill_n(quad_ + in_elements_ * 4, past_the_end * 4, 0.0F);

  std::uint32_t most = 1;
  if (columns_) {
    if (!make_axis(r.in_height, r.out_height, r.filter, keep.y, keep.height, false, vertical_, scratch)) return false;
    most = std::max(most, *std::max_element(vertical_.taps, vertical_.taps + vertical_.count));
    tops_ = take<const float*>(scratch, most);
    if (tops_ == nullptr) return false;
  }
  ring_.stride = padded(columns_first_ ? in_elements_ : out_elements_);
  ring_.capacity = most + 3;  // the pass along rows works up to three rows ahead
  ring_.data = take<float>(scratch, ring_.stride * ring_.capacity);
  if (ring_.data == nullptr) return false;
  if (columns_first_) shrunk_ = take<float>(scratch, ring_.stride * 4);
  return !columns_first_ || shrunk_ != nullptr;
}

const float* DeepResizer::row(std::uint32_t y) noexcept {
#if defined(__x86_64__)
  if (wide_) return wide_row(y);
#endif
  return plain_.row(y);
}

#if defined(__x86_64__)
const float* DeepResizer::wide_row(std::uint32_t y) noexcept {
  if (columns_first_) {
    if (y >= made_) fill_lines();
    return lines_ + (y % 4) * out_stride_;
  }
  if (!columns_) {
    fill_across(resizing_.keep.y + y + 1);
    return ring_.at(resizing_.keep.y + y);
  }
  fill_across(vertical_.start[y] + vertical_.taps[y]);
  sum_rows(y, out_elements_, lines_);
  return lines_;
}

void DeepResizer::across(float* const (&into)[4]) noexcept {
  const auto run = kAcross[taps_ < std::size(kAcross) ? taps_ : 0];
  run(quad_, std::size_t{source_.channels} * 4, elements_, out_elements_, taps_, horizontal_.k, into);
}

void DeepResizer::fill_across(std::uint32_t end) noexcept {
  for (; next_ < end; next_ += 4) {
    const std::byte* rows[4];
    float* into[4];
    for (std::uint32_t i = 0; i < 4; ++i) {
      rows[i] = source_.at(need_.x, std::min(next_ + i, need_.y + need_.height - 1));  // the last may come again
      into[i] = ring_.at(next_ + i);
    }
    prefetch_rows(next_ + 4);
    interleave(rows, levels_, in_elements_, quad_);
    across(into);
  }
}

// The four rows after these: the hardware's own prefetching ends at each page.
void DeepResizer::prefetch_rows(std::uint32_t first) const noexcept {
  const std::uint32_t end = std::min(first + 4, need_.y + need_.height);
  for (std::uint32_t y = first; y < end; ++y) {
    const std::byte* const row = source_.at(need_.x, y);
    for (std::size_t at = 0; at < in_elements_ * sizeof(std::uint16_t); at += 64) __builtin_prefetch(row + at);
  }
}

void DeepResizer::fill_lines() noexcept {
  FloatRows from;
  float* into[4];
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t y = std::min(made_ + i, resizing_.keep.height - 1);
    for (; next_ < vertical_.start[y] + vertical_.taps[y]; ++next_) {
      level_row(source_.at(need_.x, next_), in_elements_, levels_, ring_.at(next_));
    }
    float* const shrunk = shrunk_ + i * ring_.stride;
    sum_rows(y, in_elements_, shrunk);
    from.rows[i] = shrunk;
    into[i] = lines_ + i * out_stride_;
  }
  interleave(from, in_elements_, quad_);
  across(into);
  made_ += 4;
}

void DeepResizer::sum_rows(std::uint32_t y, std::size_t count, float* into) noexcept {
  const std::uint32_t start = vertical_.start[y], taps = vertical_.taps[y];
  for (std::uint32_t t = 0; t < taps; ++t) tops_[t] = ring_.at(start + t);
  down_wide(tops_, taps, vertical_.k + std::size_t{y} * vertical_.stride, count, into);
}
#endif

}  // namespace stoker::transform
