#include "stoker/transform/resize.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "stoker/transform/take.h"

namespace stoker::transform {
namespace {

constexpr std::int32_t kHalf = 1 << (kPrecision - 1);

constexpr Result kNoMemoryToResize = failed(Code::no_memory, "no room to resize the image");

std::atomic<bool> g_wide{true};

std::uint8_t clip8(std::int32_t sum) noexcept {
  return static_cast<std::uint8_t>(std::clamp(sum >> kPrecision, 0, 255));
}

// ---- portable loops

template <int kChannels>
void across_row(const std::uint8_t* row, std::int64_t x, const Axis<std::int32_t>& axis, std::uint32_t from,
                std::uint8_t* out) noexcept {
  for (std::uint32_t i = from; i < axis.count; ++i) {
    const std::int32_t* const k = axis.k + std::size_t{i} * axis.stride;
    const std::uint8_t* at = row + (static_cast<std::int64_t>(axis.start[i]) - x) * kChannels;
    std::int32_t sum[kChannels];
    for (std::int32_t& s : sum) s = kHalf;
    for (std::uint32_t t = 0; t < axis.taps[i]; ++t, at += kChannels) {
      for (int c = 0; c < kChannels; ++c) sum[c] += at[c] * k[t];
    }
    for (int c = 0; c < kChannels; ++c) out[std::size_t{i} * kChannels + c] = clip8(sum[c]);
  }
}

template <int kChannels>
void across_row(const float* row, std::int64_t x, const Axis<double>& axis, std::uint32_t from, float* out) noexcept {
  for (std::uint32_t i = from; i < axis.count; ++i) {
    const double* const k = axis.k + std::size_t{i} * axis.stride;
    const float* at = row + (static_cast<std::int64_t>(axis.start[i]) - x) * kChannels;
    double sum[kChannels] = {};
    for (std::uint32_t t = 0; t < axis.taps[i]; ++t, at += kChannels) {
      for (int c = 0; c < kChannels; ++c) sum[c] += at[c] * k[t];
    }
    for (int c = 0; c < kChannels; ++c) out[std::size_t{i} * kChannels + c] = static_cast<float>(sum[c]);
  }
}

template <typename T, typename K>
void across_row(std::uint32_t channels, const T* row, std::int64_t x, const Axis<K>& axis, std::uint32_t from,
                T* out) noexcept {
  switch (channels) {
    case 1:
      across_row<1>(row, x, axis, from, out);
      break;
    case 2:
      across_row<2>(row, x, axis, from, out);
      break;
    case 3:
      across_row<3>(row, x, axis, from, out);
      break;
    default:
      across_row<4>(row, x, axis, from, out);
      break;
  }
}

void down_columns(const std::uint8_t* top, std::size_t stride, std::uint32_t taps, const std::int32_t* k,
                  std::size_t count, std::int32_t* sums, std::uint8_t* out) noexcept {
  for (std::size_t i = 0; i < count; ++i) sums[i] = kHalf;
  for (std::uint32_t t = 0; t < taps; ++t, top += stride) {
    const std::int32_t weight = k[t];
    for (std::size_t i = 0; i < count; ++i) sums[i] += top[i] * weight;
  }
  for (std::size_t i = 0; i < count; ++i) out[i] = clip8(sums[i]);
}

void down_columns(const float* top, std::size_t stride, std::uint32_t taps, const double* k, std::size_t count,
                  double* sums, float* out) noexcept {
  for (std::size_t i = 0; i < count; ++i) sums[i] = 0;
  for (std::uint32_t t = 0; t < taps; ++t, top += stride) {
    const double weight = k[t];
    for (std::size_t i = 0; i < count; ++i) sums[i] += top[i] * weight;
  }
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(sums[i]);
}

#if defined(__x86_64__)
// ---- AVX2
// A weight of 23 bits is split as high * 2^11 + low, both of which fit the 16-bit multiply-add: the sums stay exact.
constexpr int kSplitBits = 11;
constexpr std::int32_t kLowMask = (1 << kSplitBits) - 1;

struct Halves {
  std::int16_t* high;
  std::int16_t* low;
};

void split_weights(const Axis<std::int32_t>& axis, Halves into) noexcept {
  const std::size_t all = std::size_t{axis.count} * axis.stride;
  for (std::size_t i = 0; i < all; ++i) {
    into.high[i] = static_cast<std::int16_t>(axis.k[i] >> kSplitBits);
    into.low[i] = static_cast<std::int16_t>(axis.k[i] & kLowMask);
  }
}

// One pixel of two rows, each the sum of two halves.
__attribute__((target("avx2"))) inline __m256i two_pixels(__m256i a, __m256i b) noexcept {
  const __m256i first = _mm256_permute2x128_si256(a, b, 0x20), second = _mm256_permute2x128_si256(a, b, 0x31);
  return _mm256_srai_epi32(_mm256_add_epi32(first, second), kPrecision);
}

// Four rows at once share the weights. `from` points at source column x of each row; columns [0, count) are written,
// four bytes at a time: rows of `out` need four bytes to spare.
template <int kChannels>
__attribute__((target("avx2"))) void across_four_rows(const std::uint8_t* const (&rows)[4], std::int64_t x,
                                                      const Axis<std::int32_t>& axis, Halves halves,
                                                      std::uint32_t count, std::uint8_t* const (&outs)[4]) noexcept {
  static_assert(kChannels == 3 || kChannels == 4);
  // Pairs of taps per channel, widened to 16 bits: taps 0 and 1 in the lower half, 2 and 3 in the upper.
  constexpr char n = -1;
  const __m256i pick = kChannels == 3 ? _mm256_setr_epi8(0, n, 3, n, 1, n, 4, n, 2, n, 5, n, n, n, n, n,  //
                                                         6, n, 9, n, 7, n, 10, n, 8, n, 11, n, n, n, n, n)
                                      : _mm256_setr_epi8(0, n, 4, n, 1, n, 5, n, 2, n, 6, n, 3, n, 7, n,  //
                                                         8, n, 12, n, 9, n, 13, n, 10, n, 14, n, 11, n, 15, n);
  const __m256i spread = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
  const __m256i half = _mm256_setr_epi32(kHalf, kHalf, kHalf, kHalf, 0, 0, 0, 0);  // halves are added at the end
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::int64_t at = (static_cast<std::int64_t>(axis.start[i]) - x) * kChannels;
    const std::uint32_t groups = (axis.taps[i] + 3) / 4;
    const std::int16_t* high = halves.high + std::size_t{i} * axis.stride;
    const std::int16_t* low = halves.low + std::size_t{i} * axis.stride;
    __m256i sum_high[4], sum_low[4];
    for (int r = 0; r < 4; ++r) sum_high[r] = _mm256_setzero_si256(), sum_low[r] = half;
    for (std::uint32_t g = 0; g < groups; ++g) {
      const __m256i k_high = _mm256_permutevar8x32_epi32(
          _mm256_castsi128_si256(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(high + 4 * g))), spread);
      const __m256i k_low = _mm256_permutevar8x32_epi32(
          _mm256_castsi128_si256(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(low + 4 * g))), spread);
      for (int r = 0; r < 4; ++r) {
        const __m128i bytes =
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[r] + at + std::int64_t{4} * g * kChannels));
        const __m256i pairs = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), pick);
        sum_high[r] = _mm256_add_epi32(sum_high[r], _mm256_madd_epi16(pairs, k_high));
        sum_low[r] = _mm256_add_epi32(sum_low[r], _mm256_madd_epi16(pairs, k_low));
      }
    }
    for (int r = 0; r < 4; ++r) sum_low[r] = _mm256_add_epi32(_mm256_slli_epi32(sum_high[r], kSplitBits), sum_low[r]);
    // All four rows as bytes: 0 and 2 in the lower half, 1 and 3 in the upper.
    __m256i pixels = _mm256_packs_epi32(two_pixels(sum_low[0], sum_low[1]), two_pixels(sum_low[2], sum_low[3]));
    pixels = _mm256_packus_epi16(pixels, pixels);
    const __m128i even = _mm256_castsi256_si128(pixels), odd = _mm256_extracti128_si256(pixels, 1);
    const std::int32_t four[4] = {_mm_cvtsi128_si32(even), _mm_cvtsi128_si32(odd), _mm_extract_epi32(even, 1),
                                  _mm_extract_epi32(odd, 1)};
    for (int r = 0; r < 4; ++r) std::memcpy(outs[r] + std::size_t{i} * kChannels, &four[r], 4);
  }
}

__attribute__((target("avx2"))) void down_32_columns(const std::uint8_t* top, std::size_t stride, std::uint32_t taps,
                                                     const std::int32_t* k, std::uint8_t* out) noexcept {
  const __m256i zero = _mm256_setzero_si256();
  __m256i high[4], low[4];
  for (int i = 0; i < 4; ++i) high[i] = low[i] = zero;
  for (std::uint32_t t = 0; t < taps; t += 2) {
    const bool pair = t + 1 < taps;
    const std::uint8_t* const first = top + t * stride;
    const std::int32_t second_k = pair ? k[t + 1] : 0;
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(first));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pair ? first + stride : first));
    const __m256i k_high =
        _mm256_set1_epi32(((k[t] >> kSplitBits) & 0xFFFF) |
                          static_cast<std::int32_t>(static_cast<std::uint32_t>(second_k >> kSplitBits) << 16));
    const __m256i k_low = _mm256_set1_epi32((k[t] & kLowMask) | ((second_k & kLowMask) << 16));
    const __m256i ab0 = _mm256_unpacklo_epi8(a, b), ab1 = _mm256_unpackhi_epi8(a, b);
    const __m256i pairs[4] = {_mm256_unpacklo_epi8(ab0, zero), _mm256_unpackhi_epi8(ab0, zero),
                              _mm256_unpacklo_epi8(ab1, zero), _mm256_unpackhi_epi8(ab1, zero)};
    for (int i = 0; i < 4; ++i) {
      high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(pairs[i], k_high));
      low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(pairs[i], k_low));
    }
  }
  const __m256i half = _mm256_set1_epi32(kHalf);
  for (int i = 0; i < 4; ++i) {
    const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(_mm256_slli_epi32(high[i], kSplitBits), low[i]), half);
    high[i] = _mm256_srai_epi32(sum, kPrecision);
  }
  const __m256i bytes = _mm256_packus_epi16(_mm256_packs_epi32(high[0], high[1]), _mm256_packs_epi32(high[2], high[3]));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), bytes);
}

void down_columns_wide(const std::uint8_t* top, std::size_t stride, std::uint32_t taps, const std::int32_t* k,
                       std::size_t count, std::uint8_t* out) noexcept {
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32) down_32_columns(top + i, stride, taps, k, out + i);
  if (i < count) down_32_columns(top + count - 32, stride, taps, k, out + count - 32);  // overlaps what is done
}
#endif

// The pass along rows: rows [first_row, first_row + rows) of `source` into `out`.
bool across(const Part<std::uint8_t>& source, const Axis<std::int32_t>& axis, std::uint32_t first_row,
            std::uint32_t rows, std::uint8_t* out, std::size_t out_stride, Scratch& scratch) noexcept {
  std::uint32_t done = 0;  // columns that the wide kernel may read without leaving the row
#if defined(__x86_64__)
  if (wide_kernels() && source.channels >= 3) {
    const std::int64_t spare = source.channels == 3 ? 4 : 0;
    const std::int64_t row_bytes = std::int64_t{source.width} * source.channels;
    while (done < axis.count) {
      const std::int64_t last = axis.start[done] - source.x + std::int64_t{(axis.taps[done] + 3) / 4} * 4;
      if (last * source.channels + spare > row_bytes || axis.taps[done] == 0) break;
      ++done;
    }
    const std::size_t all = std::size_t{axis.count} * axis.stride;
    const Halves halves = {take<std::int16_t>(scratch, all), take<std::int16_t>(scratch, all)};
    if (halves.high == nullptr || halves.low == nullptr) return false;
    split_weights(axis, halves);
    for (std::uint32_t y = 0; y < rows; y += 4) {
      const std::uint8_t* from[4];
      std::uint8_t* into[4];
      for (std::uint32_t r = 0; r < 4; ++r) {
        const std::uint32_t row = std::min(y + r, rows - 1);  // the last group may do a row twice
        from[r] = source.at(source.x, first_row + row);
        into[r] = out + row * out_stride;
      }
      if (source.channels == 3) {
        across_four_rows<3>(from, source.x, axis, halves, done, into);
      } else {
        across_four_rows<4>(from, source.x, axis, halves, done, into);
      }
    }
  }
#else
  (void)scratch;
#endif
  if (done < axis.count) {
    for (std::uint32_t y = 0; y < rows; ++y) {
      across_row(source.channels, source.at(source.x, first_row + y), source.x, axis, done, out + y * out_stride);
    }
  }
  return true;
}

bool across(const Part<float>& source, const Axis<double>& axis, std::uint32_t first_row, std::uint32_t rows,
            float* out, std::size_t out_stride, Scratch&) noexcept {
  for (std::uint32_t y = 0; y < rows; ++y) {
    across_row(source.channels, source.at(source.x, first_row + y), source.x, axis, 0, out + y * out_stride);
  }
  return true;
}

void down(const std::uint8_t* top, std::size_t stride, std::uint32_t taps, const std::int32_t* k, std::size_t count,
          std::int32_t* sums, std::uint8_t* out) noexcept {
#if defined(__x86_64__)
  if (wide_kernels() && count >= 32) return down_columns_wide(top, stride, taps, k, count, out);
#endif
  down_columns(top, stride, taps, k, count, sums, out);
}

void down(const float* top, std::size_t stride, std::uint32_t taps, const double* k, std::size_t count, double* sums,
          float* out) noexcept {
  down_columns(top, stride, taps, k, count, sums, out);
}

// Pillow's MULDIV255 and its inverse.
void weight_by_alpha(const std::uint8_t* from, std::uint32_t channels, std::size_t pixels,
                     std::uint8_t* into) noexcept {
  for (std::size_t i = 0; i < pixels; ++i, from += channels, into += channels) {
    const unsigned alpha = from[channels - 1];
    for (std::uint32_t c = 0; c + 1 < channels; ++c) {
      const unsigned product = from[c] * alpha + 128;
      into[c] = static_cast<std::uint8_t>(((product >> 8) + product) >> 8);
    }
    into[channels - 1] = static_cast<std::uint8_t>(alpha);
  }
}

void unweight_by_alpha(std::uint8_t* pixel, std::uint32_t channels, std::size_t pixels) noexcept {
  for (std::size_t i = 0; i < pixels; ++i, pixel += channels) {
    const unsigned alpha = pixel[channels - 1];
    if (alpha == 0 || alpha == 255) continue;
    for (std::uint32_t c = 0; c + 1 < channels; ++c) {
      pixel[c] = static_cast<std::uint8_t>(std::min(255u, 255u * pixel[c] / alpha));
    }
  }
}

}  // namespace

bool use_wide_kernels(bool wanted) noexcept {
  return g_wide.exchange(wanted);
}

bool wide_kernels() noexcept {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has && g_wide.load(std::memory_order_relaxed);
#else
  return false;
#endif
}

bool columns_first(const Resizing& r) noexcept {
  const std::int64_t rows_lost = std::int64_t{r.in_height} - r.out_height;
  const std::int64_t columns_lost = std::int64_t{r.in_width} - r.out_width;
  return rows_lost > 0 && rows_lost > columns_lost * 2;
}

Rect needed(const Resizing& r) noexcept {
  const Reach x = reach(r.across(), r.out_width, r.filter, r.keep.x, r.keep.width, r.mirrored);
  const Reach y = reach(r.down(), r.out_height, r.filter, r.keep.y, r.keep.height, false);
  return {x.first, y.first, x.count, y.count};
}

template <typename T>
Result Resizer<T>::prepare(const Part<T>& whole, const Resizing& r, Scratch& scratch) noexcept {
  const Rect& keep = r.keep;
  const bool rows = r.in_width != r.out_width || !r.across().is_whole();
  Part<T> source = whole;
  channels_ = source.channels;
  elements_ = keep.width * channels_;
  columns_ = r.in_height != r.out_height || !r.down().is_whole();
  nearest_ = r.filter == Filter::nearest && (rows || columns_);
  alpha_ = false;
  first_row_ = keep.y;
  line_ = take<T>(scratch, elements_ + 4);
  if (line_ == nullptr) return kNoMemoryToResize;

  if (nearest_) {
    across_ = take<std::uint32_t>(scratch, keep.width);
    down_ = take<std::uint32_t>(scratch, keep.height);
    if (across_ == nullptr || down_ == nullptr) return kNoMemoryToResize;
    nearest_inputs(r.in_width, r.out_width, keep.x, keep.width, r.mirrored, across_);
    nearest_inputs(r.in_height, r.out_height, keep.y, keep.height, false, down_);
    from_ = source;
    return {};
  }

  const Rect need = needed(r);
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    if ((channels_ == 2 || channels_ == 4) && (rows || columns_)) {
      const std::size_t stride = std::size_t{need.width} * channels_;
      T* const weighted = take<T>(scratch, stride * need.height);
      if (weighted == nullptr) return kNoMemoryToResize;
      for (std::uint32_t y = 0; y < need.height; ++y) {
        weight_by_alpha(source.at(need.x, std::int64_t{need.y} + y), channels_, need.width, weighted + y * stride);
      }
      source = {weighted, stride, need.x, need.y, need.width, need.height, channels_};
      alpha_ = true;
    }
  }
  if (columns_) {
    sums_ = take<Weight>(scratch, std::max<std::size_t>(elements_, std::size_t{need.width} * channels_));
    if (sums_ == nullptr ||
        !make_axis(r.down(), r.out_height, r.filter, keep.y, keep.height, false, vertical_, scratch)) {
      return kNoMemoryToResize;
    }
  }
  if (!rows) {
    from_ = source;
    from_.data = source.at(keep.x, source.y);
    from_.x = 0;
    return {};
  }

  std::uint32_t first = need.y, count = need.height;
  if (columns_ && columns_first(r)) {
    const std::size_t wide_row = std::size_t{need.width} * channels_;
    T* const shrunk = take<T>(scratch, wide_row * keep.height);
    if (shrunk == nullptr) return kNoMemoryToResize;
    for (std::uint32_t y = 0; y < keep.height; ++y) {
      const T* const top = source.at(need.x, vertical_.taps[y] == 0 ? need.y : vertical_.start[y]);
      down(top, source.stride, vertical_.taps[y], vertical_.k + std::size_t{y} * vertical_.stride, wide_row, sums_,
           shrunk + y * wide_row);
    }
    source = {shrunk, wide_row, need.x, keep.y, need.width, keep.height, channels_};
    first = keep.y, count = keep.height;
    columns_ = false;
  }
  Axis<Weight> horizontal;
  const std::size_t stride = (elements_ + 4 + 63) / 64 * 64;
  T* const between = take<T>(scratch, stride * count);
  if (between == nullptr ||
      !make_axis(r.across(), r.out_width, r.filter, keep.x, keep.width, r.mirrored, horizontal, scratch) ||
      !across(source, horizontal, first, count, between, stride, scratch)) {
    return kNoMemoryToResize;
  }
  from_ = {between, stride, 0, first, keep.width, count, channels_};
  return {};
}

template <typename T>
const T* Resizer<T>::row(std::uint32_t y) noexcept {
  if (nearest_) {
    const T* const from = from_.at(from_.x, down_[y]);
    T* into = line_;
    for (std::uint32_t i = 0; i < elements_ / channels_; ++i) {
      const T* const pixel = from + static_cast<std::size_t>(across_[i] - from_.x) * channels_;
      for (std::uint32_t c = 0; c < channels_; ++c) *into++ = pixel[c];
    }
    return line_;
  }
  const T* result = line_;
  if (columns_) {
    const T* const top = from_.at(0, vertical_.taps[y] == 0 ? from_.y : std::int64_t{vertical_.start[y]});
    down(top, from_.stride, vertical_.taps[y], vertical_.k + std::size_t{y} * vertical_.stride, elements_, sums_,
         line_);
  } else {
    result = from_.at(0, std::int64_t{first_row_} + y);
  }
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    if (alpha_) {
      if (result != line_) std::memcpy(line_, result, elements_);
      unweight_by_alpha(line_, channels_, elements_ / channels_);
      result = line_;
    }
  }
  return result;
}

template class Resizer<std::uint8_t>;
template class Resizer<float>;

}  // namespace stoker::transform
