#include "stoker/transform/voxels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "stoker/transform/half.h"
#include "stoker/transform/resize.h"

namespace stoker::transform {
namespace {

struct Half {
  std::uint16_t bits;
};
struct Brain {
  std::uint16_t bits;
};

// Calls take(T{}) with the type of the values.
template <typename Take>
void with_type(DType dtype, const Take& take) noexcept {
  switch (dtype) {
    case DType::u8:
    case DType::boolean:
      return take(std::uint8_t{});
    case DType::i8:
      return take(std::int8_t{});
    case DType::u16:
      return take(std::uint16_t{});
    case DType::i16:
      return take(std::int16_t{});
    case DType::u32:
      return take(std::uint32_t{});
    case DType::i32:
      return take(std::int32_t{});
    case DType::u64:
      return take(std::uint64_t{});
    case DType::i64:
      return take(std::int64_t{});
    case DType::f16:
      return take(Half{});
    case DType::bf16:
      return take(Brain{});
    case DType::f32:
      return take(float{});
    case DType::f64:
      return take(double{});
  }
}

template <typename T>
T load(const std::byte* at, bool swap) noexcept {
  std::byte bytes[sizeof(T)];
  std::memcpy(bytes, at, sizeof(T));
  if (swap) std::reverse(bytes, bytes + sizeof(T));
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

template <typename T>
auto number(T value) noexcept {
  if constexpr (std::is_same_v<T, Half>) {
    return from_float16(value.bits);
  } else if constexpr (std::is_same_v<T, Brain>) {
    return from_bfloat16(value.bits);
  } else {
    return value;
  }
}

// Rows of a volume lie apart, often on pages of their own, so the CPU does not foresee them. Always inline: GCC deletes
// a call of a function that only prefetches.
constexpr std::uint32_t kRowsAhead = 4;
[[gnu::always_inline]] inline void fetch_ahead(const VoxelPlane& plane, std::uint32_t y) noexcept {
  if (y + kRowsAhead >= plane.height) return;
  const std::byte* const row = plane.first + (y + kRowsAhead) * plane.row_bytes;
  const std::size_t bytes = std::size_t{plane.width} * plane.channels * size_of(plane.dtype);
  for (std::size_t at = 0; at < bytes + 63; at += 64) __builtin_prefetch(row + at);
}

template <typename T>
inline constexpr bool kIsSmall = std::is_integral_v<T> && sizeof(T) <= 2;

// What becomes of a value that a float holds.
struct Narrow {
  explicit Narrow(const Normalization& n) noexcept
      : shift(static_cast<float>(n.shift)),
        scale(static_cast<float>(n.scale)),
        offset(static_cast<float>(n.offset + (static_cast<double>(shift) - n.shift) * n.scale)),
        low(n.low),
        high(n.high) {}
  float shift, scale, offset, low, high;
};

// The sums of a row of small integers, exactly.
struct RowSums {
  std::int64_t sum = 0;
  std::uint64_t squares = 0;
};

#if defined(__x86_64__)

[[gnu::target("avx2"), gnu::always_inline]] inline __m256 floats_of(const std::uint8_t* at) noexcept {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at))));
}
[[gnu::target("avx2"), gnu::always_inline]] inline __m256i words_of(const std::int16_t* at) noexcept {
  return _mm256_cvtepi16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
}
[[gnu::target("avx2"), gnu::always_inline]] inline __m256i words_of(const std::uint16_t* at) noexcept {
  return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
}
[[gnu::target("avx2"), gnu::always_inline]] inline __m256 floats_of(const std::int16_t* at) noexcept {
  return _mm256_cvtepi32_ps(words_of(at));
}
[[gnu::target("avx2"), gnu::always_inline]] inline __m256 floats_of(const std::uint16_t* at) noexcept {
  return _mm256_cvtepi32_ps(words_of(at));
}
[[gnu::target("avx2"), gnu::always_inline]] inline __m256 floats_of(const float* at) noexcept {
  return _mm256_loadu_ps(at);
}

// Eight values at a time; returns how many are done. The order of operations is that of the plain loop, and so are the
// results.
template <typename T, bool kStream>
[[gnu::target("avx2")]] std::size_t convert_wide(const T* from, std::size_t count, const Narrow& n,
                                                 float* to) noexcept {
  const __m256 shift = _mm256_set1_ps(n.shift), scale = _mm256_set1_ps(n.scale), offset = _mm256_set1_ps(n.offset);
  const __m256 low = _mm256_set1_ps(n.low), high = _mm256_set1_ps(n.high);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    __m256 value = _mm256_add_ps(_mm256_mul_ps(_mm256_sub_ps(floats_of(from + i), shift), scale), offset);
    value = _mm256_min_ps(high, _mm256_max_ps(low, value));  // of NaN: the second
    if constexpr (kStream) {
      _mm256_stream_ps(to + i, value);
    } else {
      _mm256_storeu_ps(to + i, value);
    }
  }
  return i;
}

[[gnu::target("avx2"), gnu::always_inline]] inline std::int64_t sum_of(__m256i lanes) noexcept {
  alignas(32) std::int64_t parts[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(parts), lanes);
  return parts[0] + parts[1] + parts[2] + parts[3];
}

constexpr std::size_t kMostBytesAtOnce = 1 << 17;  // 2^12 steps, each below 2^18 in a lane

[[gnu::target("avx2")]] std::size_t add_wide(const std::uint8_t* row, std::size_t count, RowSums& sums) noexcept {
  const __m256i zero = _mm256_setzero_si256();
  std::size_t i = 0;
  while (i + 32 <= count) {
    __m256i total = zero, squares = zero;
    const std::size_t end = std::min(count, i + kMostBytesAtOnce);
    for (; i + 32 <= end; i += 32) {
      const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + i));
      total = _mm256_add_epi64(total, _mm256_sad_epu8(bytes, zero));
      const __m256i low = _mm256_unpacklo_epi8(bytes, zero), high = _mm256_unpackhi_epi8(bytes, zero);
      squares = _mm256_add_epi32(squares, _mm256_add_epi32(_mm256_madd_epi16(low, low), _mm256_madd_epi16(high, high)));
    }
    sums.sum += sum_of(total);
    sums.squares += static_cast<std::uint64_t>(
        sum_of(_mm256_add_epi64(_mm256_unpacklo_epi32(squares, zero), _mm256_unpackhi_epi32(squares, zero))));
  }
  return i;
}

template <typename T>
[[gnu::target("avx2")]] std::size_t add_wide_words(const T* row, std::size_t count, RowSums& sums) noexcept {
  const __m256i zero = _mm256_setzero_si256();
  __m256i squares = zero;
  std::size_t i = 0;
  while (i + 8 <= count) {
    __m256i total = zero;
    const std::size_t end = std::min(count, i + (std::size_t{1} << 16));  // so that a lane cannot overflow
    for (; i + 8 <= end; i += 8) {
      const __m256i words = words_of(row + i);
      total = _mm256_add_epi32(total, words);
      const __m256i product = _mm256_mullo_epi32(words, words);  // below 2^32
      squares = _mm256_add_epi64(
          squares, _mm256_add_epi64(_mm256_unpacklo_epi32(product, zero), _mm256_unpackhi_epi32(product, zero)));
    }
    sums.sum += sum_of(_mm256_add_epi64(_mm256_cvtepi32_epi64(_mm256_castsi256_si128(total)),
                                        _mm256_cvtepi32_epi64(_mm256_extracti128_si256(total, 1))));
  }
  sums.squares += static_cast<std::uint64_t>(sum_of(squares));
  return i;
}
std::size_t add_wide(const std::int16_t* row, std::size_t count, RowSums& sums) noexcept {
  return add_wide_words(row, count, sums);
}
std::size_t add_wide(const std::uint16_t* row, std::size_t count, RowSums& sums) noexcept {
  return add_wide_words(row, count, sums);
}

[[gnu::target("avx2")]] std::size_t add_wide(const float* row, std::size_t count, Moments& moments) noexcept {
  const __m256d shift = _mm256_set1_pd(moments.shift);
  __m256d total = _mm256_setzero_pd(), squares = _mm256_setzero_pd();
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const __m256d value = _mm256_sub_pd(_mm256_cvtps_pd(_mm_loadu_ps(row + i)), shift);
    total = _mm256_add_pd(total, value);
    squares = _mm256_add_pd(squares, _mm256_mul_pd(value, value));
  }
  alignas(32) double parts[8];
  _mm256_store_pd(parts, total);
  _mm256_store_pd(parts + 4, squares);
  moments.sum += (parts[0] + parts[1]) + (parts[2] + parts[3]);
  moments.squares += (parts[4] + parts[5]) + (parts[6] + parts[7]);
  return i;
}

template <typename T>
inline constexpr bool kIsWide = std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::int16_t> ||
                                std::is_same_v<T, std::uint16_t> || std::is_same_v<T, float>;

#endif

template <typename T>
void add_row(const VoxelPlane& plane, const std::byte* row, Moments& moments) noexcept {
  const std::size_t step = plane.channels * sizeof(T), count = plane.width;
  if constexpr (kIsSmall<T>) {
    RowSums sums;
    std::size_t i = 0;
#if defined(__x86_64__)
    if constexpr (kIsWide<T>) {
      if (plane.channels == 1 && !(plane.swap_bytes && sizeof(T) > 1) && wide_kernels())
        i = add_wide(reinterpret_cast<const T*>(row), count, sums);
    }
#endif
    for (; i < count; ++i) {
      const std::int64_t value = load<T>(row + i * step, plane.swap_bytes);
      sums.sum += value;
      sums.squares += static_cast<std::uint64_t>(value * value);
    }
    moments.sum += static_cast<double>(sums.sum);
    moments.squares += static_cast<double>(sums.squares);
  } else {
    if (moments.count == 0) {
      const auto first = static_cast<double>(number(load<T>(row, plane.swap_bytes)));
      moments.shift = std::isfinite(first) ? first : 0;
    }
    std::size_t i = 0;
#if defined(__x86_64__)
    if constexpr (std::is_same_v<T, float>) {
      if (plane.channels == 1 && !plane.swap_bytes && wide_kernels())
        i = add_wide(reinterpret_cast<const float*>(row), count, moments);
    }
#endif
    for (; i < count; ++i) {
      const double value = static_cast<double>(number(load<T>(row + i * step, plane.swap_bytes))) - moments.shift;
      moments.sum += value;
      moments.squares += value * value;
    }
  }
  moments.count += count;
}

template <typename T>
inline constexpr bool kIsNarrow = sizeof(T) < 4 || std::is_same_v<T, float>;

// Of a Narrow or a Normalization.
template <typename Number, typename T, typename How>
float normalized(T value, const How& n) noexcept {
  const auto scaled = static_cast<float>((static_cast<Number>(value) - n.shift) * n.scale + n.offset);
  const float raised = n.low > scaled ? n.low : scaled;  // NaN stays
  return n.high < raised ? n.high : raised;
}

template <typename T>
void convert_row(const VoxelPlane& plane, const std::byte* row, const Normalization& n, float* to,
                 [[maybe_unused]] bool past_cache) noexcept {
  const std::size_t step = plane.channels * sizeof(T), count = plane.width;
  if constexpr (!kIsNarrow<T>) {
    for (std::size_t i = 0; i < count; ++i) to[i] = normalized<double>(load<T>(row + i * step, plane.swap_bytes), n);
    return;
  }
  const Narrow narrow(n);
  std::size_t i = 0;
#if defined(__x86_64__)
  if constexpr (kIsWide<T>) {
    if (plane.channels == 1 && !(plane.swap_bytes && sizeof(T) > 1) && wide_kernels()) {
      const auto* const from = reinterpret_cast<const T*>(row);
      const bool is_aligned = reinterpret_cast<std::uintptr_t>(to) % 32 == 0;
      i = past_cache && is_aligned ? convert_wide<T, true>(from, count, narrow, to)
                                   : convert_wide<T, false>(from, count, narrow, to);
    }
  }
#endif
  for (; i < count; ++i) to[i] = normalized<float>(number(load<T>(row + i * step, plane.swap_bytes)), narrow);
}

template <typename T>
void copy_row(const VoxelPlane& plane, const std::byte* row, T* to) noexcept {
  if (plane.channels == 1 && !(plane.swap_bytes && sizeof(T) > 1)) {
    std::memcpy(to, row, plane.width * sizeof(T));
    return;
  }
  for (std::size_t i = 0; i < plane.width; ++i) to[i] = load<T>(row + i * plane.channels * sizeof(T), plane.swap_bytes);
}

// (i, j) of `to` is (j, i) of `from`, each counted from the end where it is mirrored. Squares of a few cache lines.
template <typename E>
void transpose(const E* from, std::uint32_t edge, const PlaneTurn& turn, E* to) noexcept {
  constexpr std::uint32_t kTile = 16;
  for (std::uint32_t top = 0; top < edge; top += kTile) {
    for (std::uint32_t left = 0; left < edge; left += kTile) {
      for (std::uint32_t i = top; i < std::min(edge, top + kTile); ++i) {
        const std::size_t column = turn.mirror_columns ? edge - 1 - i : i;
        for (std::uint32_t j = left; j < std::min(edge, left + kTile); ++j) {
          const std::size_t row = turn.mirror_rows ? edge - 1 - j : j;
          to[std::size_t{i} * edge + j] = from[row * edge + column];
        }
      }
    }
  }
}

// put(row, to) writes a row of plane.width values.
template <typename E, typename Put>
void place_rows(const VoxelPlane& plane, const PlaneTurn& turn, std::uint32_t height, std::uint32_t width, E* to,
                E* line, const Put& put) noexcept {
  E* const rows = turn.transpose ? line : to;
  const std::size_t kept = std::min(plane.width, width);
  for (std::uint32_t y = 0; y < height; ++y) {
    E* const row = rows + std::size_t{!turn.transpose && turn.mirror_rows ? height - 1 - y : y} * width;
    if (y >= plane.height) {
      std::memset(static_cast<void*>(row), 0, width * sizeof(E));
      continue;
    }
    fetch_ahead(plane, y);
    put(plane.first + y * plane.row_bytes, row);
    if (kept < width) std::memset(static_cast<void*>(row + kept), 0, (width - kept) * sizeof(E));
    if (!turn.transpose && turn.mirror_columns) std::reverse(row, row + width);
  }
  if (turn.transpose) transpose(line, height, turn, to);
}

}  // namespace

double Moments::mean() const noexcept {
  return count == 0 ? 0 : shift + sum / static_cast<double>(count);
}

double Moments::deviation() const noexcept {
  if (count == 0) return 0;
  const double n = static_cast<double>(count), mean_of_shifted = sum / n;
  const double variance = squares / n - mean_of_shifted * mean_of_shifted;
  return variance > 0 ? std::sqrt(variance) : std::isnan(variance) ? variance : 0;
}

void add_plane(const VoxelPlane& plane, Moments& moments) noexcept {
  with_type(plane.dtype, [&](auto type) {
    for (std::uint32_t y = 0; y < plane.height; ++y) {
      fetch_ahead(plane, y);
      add_row<decltype(type)>(plane, plane.first + y * plane.row_bytes, moments);
    }
  });
}

PlaneTurn plane_turn(bool flip_rows, bool flip_columns, std::uint32_t quarter_turns) noexcept {
  switch (quarter_turns % 4) {
    case 1:
      return {true, flip_rows, !flip_columns};
    case 2:
      return {false, !flip_rows, !flip_columns};
    case 3:
      return {true, !flip_rows, flip_columns};
    default:
      return {false, flip_rows, flip_columns};
  }
}

void write_plane(const VoxelPlane& plane, const Normalization& normalization, const PlaneTurn& turn,
                 std::uint32_t height, std::uint32_t width, float* to, float* line, bool past_cache) noexcept {
  // Rows that are read again here stay in the caches.
  const bool streams = past_cache && !turn.transpose && !turn.mirror_columns;
  with_type(plane.dtype, [&](auto type) {
    place_rows(plane, turn, height, width, to, line, [&](const std::byte* row, float* into) {
      convert_row<decltype(type)>(plane, row, normalization, into, streams);
    });
  });
#if defined(__x86_64__)
  if (streams) _mm_sfence();  // these stores are not ordered with the one that says the row is there
#endif
}

void copy_plane(const VoxelPlane& plane, const PlaneTurn& turn, std::uint32_t height, std::uint32_t width,
                std::byte* to, std::byte* line) noexcept {
  const auto copy = [&](auto type) {
    using E = decltype(type);
    place_rows(plane, turn, height, width, reinterpret_cast<E*>(to), reinterpret_cast<E*>(line),
               [&](const std::byte* row, E* into) { copy_row(plane, row, into); });
  };
  switch (size_of(plane.dtype)) {
    case 1:
      return copy(std::uint8_t{});
    case 2:
      return copy(std::uint16_t{});
    case 4:
      return copy(std::uint32_t{});
    default:
      return copy(std::uint64_t{});
  }
}

}  // namespace stoker::transform
