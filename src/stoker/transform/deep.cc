#include "stoker/transform/deep.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "stoker/base/round.h"
#include "stoker/transform/take.h"

namespace stoker::transform {
namespace {

constexpr Result kNoMemory = failed(Code::no_memory, "no room to resize the image");

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
#endif

// What a word becomes before it is weighted, and a sum after it.
struct Bounds {
  float shift = 0, most = 0;  // of a window
  float factor = 1;           // what is left of the level, by multiplication or, for shares, division
  float limit = 0;            // of the result
};

Bounds bounds_of(const Levels& levels, Filter filter) noexcept {
  // The lobes of these filters reach beyond the values they weigh.
  const bool has_lobes = filter == Filter::bicubic || filter == Filter::lanczos;
  const float limit = has_lobes ? std::numeric_limits<float>::infinity() : 1.0F;
  switch (levels.what) {
    case Levels::What::as_stored:
      break;
    case Levels::What::share:
      return {0, 0, 65535.0F, limit};
    case Levels::What::window:
      return {levels.shift, 1.0F / levels.scale, levels.scale, limit};
  }
  return {};
}

template <bool kWindow>
[[gnu::always_inline]] inline float bounded(float value, const Bounds& bounds) noexcept {
  if constexpr (kWindow) {
    value -= bounds.shift;
    value = value < 0.0F ? 0.0F : value;
    value = value > bounds.most ? bounds.most : value;
  }
  return value;
}

template <bool kWindow>
void down_plain(const std::byte* const* rows, std::uint32_t taps, const float* k, std::size_t first, std::size_t count,
                const Bounds& bounds, float* into) noexcept {
  for (std::size_t i = first; i < count; ++i) {
    float sum = 0;
    for (std::uint32_t t = 0; t < taps; ++t) sum += bounded<kWindow>(load_word(rows[t] + 2 * i), bounds) * k[t];
    into[i] = sum;
  }
}

// Four sums of every fourth tap, added in pairs: what the vectors do.
void across_plain(const float* from, std::size_t channels, const ElementTaps* elements, std::size_t count,
                  std::uint32_t quads, const float* k, float* into) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const float* const at = from + elements[i].begin;
    const float* const weights = k + elements[i].weights;
    float sums[4] = {};
    for (std::size_t t = 0; t < std::size_t{quads} * 4; t += 4) {
      for (std::size_t l = 0; l < 4; ++l) sums[l] += at[(t + l) * channels] * weights[t + l];
    }
    into[i] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
}

void finish_row(const Levels& levels, const Bounds& bounds, std::size_t count, float* row) noexcept {
  const float factor = bounds.factor, limit = bounds.limit;
  if (levels.what == Levels::What::share) {
    for (std::size_t i = 0; i < count; ++i) row[i] = row[i] / factor > limit ? limit : row[i] / factor;
  } else if (levels.what == Levels::What::window) {
    for (std::size_t i = 0; i < count; ++i) row[i] = row[i] * factor > limit ? limit : row[i] * factor;
  }
}

#if defined(__x86_64__)
template <bool kWindow>
STOKER_AVX2 inline __m256 eight_of(const std::byte* words, __m256 shift, __m256 most) noexcept {
  const __m128i loaded = _mm_loadu_si128(reinterpret_cast<const __m128i*>(words));
  __m256 values = _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(loaded));
  if constexpr (kWindow) {
    // In this order of operands NaN stays NaN.
    values = _mm256_min_ps(most, _mm256_max_ps(_mm256_setzero_ps(), _mm256_sub_ps(values, shift)));
  }
  return values;
}

// kTaps is their number; 0: `taps` is. Returns how many elements were done. Asks the memory for what lies `ahead` bytes
// on as it goes: the hardware's own prefetching ends at each page.
template <bool kWindow, std::uint32_t kTaps>
STOKER_AVX2 std::size_t down_wide(const std::byte* const* rows, std::uint32_t taps, const float* k, std::size_t count,
                                  const Bounds& bounds, std::size_t ahead, float* into) noexcept {
  const __m256 shift = _mm256_set1_ps(bounds.shift), most = _mm256_set1_ps(bounds.most);
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    __m256 sums[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
#pragma GCC unroll 8
    for (std::uint32_t t = 0; t < (kTaps == 0 ? taps : kTaps); ++t) {
      const std::byte* const at = rows[t] + 2 * i;
      _mm_prefetch(reinterpret_cast<const char*>(reinterpret_cast<std::uintptr_t>(at) + ahead), _MM_HINT_T0);
      const __m256 weight = _mm256_broadcast_ss(k + t);
#pragma GCC unroll 4
      for (std::size_t v = 0; v < 4; ++v) {
        sums[v] = _mm256_add_ps(sums[v], _mm256_mul_ps(eight_of<kWindow>(at + 16 * v, shift, most), weight));
      }
    }
    for (std::size_t v = 0; v < 4; ++v) _mm256_storeu_ps(into + i + 8 * v, sums[v]);
  }
  return i;
}

template <bool kWindow>
constexpr decltype(&down_wide<kWindow, 0>) kDown[] = {
    down_wide<kWindow, 0>, down_wide<kWindow, 1>, down_wide<kWindow, 2>, down_wide<kWindow, 3>, down_wide<kWindow, 4>,
    down_wide<kWindow, 5>, down_wide<kWindow, 6>, down_wide<kWindow, 7>, down_wide<kWindow, 8>};

STOKER_AVX2 inline __m256 pair_at(const float* low, const float* high) noexcept {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
}

// kQuads is their number; 0: `quads` is. Writes up to seven elements beyond `count`.
template <std::uint32_t kQuads>
STOKER_AVX2 void across_wide(const float* from, const ElementTaps* elements, std::size_t count, std::uint32_t quads,
                             const float* k, float* into) noexcept {
  for (std::size_t i = 0; i < count; i += 8) {
    const ElementTaps* const e = elements + i;
    __m256 sums[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
#pragma GCC unroll 4
    for (std::uint32_t q = 0; q < (kQuads == 0 ? quads : kQuads); ++q) {
#pragma GCC unroll 4
      for (std::size_t j = 0; j < 4; ++j) {
        const __m256 values = pair_at(from + e[j].begin + q * 4, from + e[j + 4].begin + q * 4);
        const __m256 weights = pair_at(k + e[j].weights + q * 4, k + e[j + 4].weights + q * 4);
        sums[j] = _mm256_add_ps(sums[j], _mm256_mul_ps(values, weights));
      }
    }
    const __m256 first = _mm256_hadd_ps(sums[0], sums[1]), second = _mm256_hadd_ps(sums[2], sums[3]);
    _mm256_storeu_ps(into + i, _mm256_hadd_ps(first, second));
  }
}

constexpr decltype(&across_wide<0>) kAcross[] = {across_wide<0>, across_wide<1>, across_wide<2>, across_wide<3>};
#endif

template <bool kWindow>
void down(const std::byte* const* rows, std::uint32_t taps, const float* k, std::size_t count, const Bounds& bounds,
          [[maybe_unused]] std::size_t ahead, float* into) noexcept {
  std::size_t done = 0;
#if defined(__x86_64__)
  if (wide_kernels()) {
    done = kDown<kWindow>[taps < std::size(kDown<kWindow>) ? taps : 0](rows, taps, k, count, bounds, ahead, into);
  }
#endif
  down_plain<kWindow>(rows, taps, k, done, count, bounds, into);
}

void across(const float* from, std::size_t channels, const ElementTaps* elements, std::size_t count,
            std::uint32_t quads, const float* k, float* into) noexcept {
#if defined(__x86_64__)
  if (channels == 1 && wide_kernels()) {
    return kAcross[quads < std::size(kAcross) ? quads : 0](from, elements, count, quads, k, into);
  }
#endif
  across_plain(from, channels, elements, count, quads, k, into);
}

constexpr std::size_t kLane = 8;  // floats that an output row is rounded up to
std::size_t padded(std::size_t elements) noexcept {
  return round_up(elements, kLane);
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
  if (resizing.filter == Filter::nearest) return prepare_nearest(scratch);
  return prepare_across(scratch) && prepare_down(scratch) ? Result{} : kNoMemory;
}

Result DeepResizer::prepare_nearest(Scratch& scratch) noexcept {
  float* const loaded = take<float>(scratch, in_elements_ * need_.height);
  if (loaded == nullptr) return kNoMemory;
  for (std::uint32_t y = 0; y < need_.height; ++y) {
    level_row(source_.at(need_.x, std::int64_t{need_.y} + y), in_elements_, levels_, loaded + y * in_elements_);
  }
  const Part<float> part{loaded, in_elements_, need_.x, need_.y, need_.width, need_.height, source_.channels};
  return nearest_.prepare(part, resizing_, scratch);
}

bool DeepResizer::prepare_across(Scratch& scratch) noexcept {
  const Resizing& r = resizing_;
  const std::uint32_t channels = source_.channels;
  horizontal_ = {};
  quads_ = 0;
  if (r.in_width != r.out_width) {
    if (!make_axis(r.in_width, r.out_width, r.filter, r.keep.x, r.keep.width, r.mirrored, horizontal_, scratch)) {
      return false;
    }
    const std::size_t places = padded(out_elements_);
    elements_ = take<ElementTaps>(scratch, places);
    line_ = take<float>(scratch, places);
    if (elements_ == nullptr || line_ == nullptr) return false;
    for (std::uint32_t i = 0, e = 0; i < r.keep.width; ++i) {
      const std::uint32_t begin = horizontal_.taps[i] == 0 ? 0 : (horizontal_.start[i] - need_.x) * channels;
      for (std::uint32_t c = 0; c < channels; ++c, ++e) elements_[e] = {begin + c, i * horizontal_.stride};
      quads_ = std::max(quads_, (horizontal_.taps[i] + 3) / 4);
    }
    std::fill(elements_ + out_elements_, elements_ + places, ElementTaps{});
  }
  // Taps beyond an element's own have weight zero, which adds nothing to a finite value.
  const std::size_t past_the_end = std::size_t{quads_} * 4 * channels;
  summed_ = take<float>(scratch, in_elements_ + past_the_end);
  if (summed_ == nullptr) return false;
  std::fill_n(summed_ + in_elements_, past_the_end, 0.0F);
  return true;
}

bool DeepResizer::prepare_down(Scratch& scratch) noexcept {
  const Resizing& r = resizing_;
  vertical_ = {};
  std::uint32_t most = 1;
  if (r.in_height != r.out_height) {
    if (!make_axis(r.in_height, r.out_height, r.filter, r.keep.y, r.keep.height, false, vertical_, scratch)) {
      return false;
    }
    most = std::max(most, *std::max_element(vertical_.taps, vertical_.taps + vertical_.count));
  }
  tops_ = take<const std::byte*>(scratch, most);
  return tops_ != nullptr;
}

const float* DeepResizer::row(std::uint32_t y) noexcept {
  if (resizing_.filter == Filter::nearest) return nearest_.row(y);
  const float one = 1;
  const float* k = &one;
  std::uint32_t start = resizing_.keep.y + y, taps = 1;
  if (vertical_.count != 0) {
    start = vertical_.start[y], taps = vertical_.taps[y];
    k = vertical_.k + std::size_t{y} * vertical_.stride;
  }
  for (std::uint32_t t = 0; t < taps; ++t) tops_[t] = source_.at(need_.x, std::int64_t{start} + t);

  const Bounds bounds = bounds_of(levels_, resizing_.filter);
  const auto run = levels_.what == Levels::What::window ? down<true> : down<false>;
  const bool more = start + 2 * taps <= need_.y + need_.height;
  run(tops_, taps, k, in_elements_, bounds, more ? taps * source_.stride_bytes : 0, summed_);
  float* line = summed_;
  if (horizontal_.count != 0) {
    line = line_;
    across(summed_, source_.channels, elements_, out_elements_, quads_, horizontal_.k, line);
  }
  finish_row(levels_, bounds, out_elements_, line);
  return line;
}

}  // namespace stoker::transform
