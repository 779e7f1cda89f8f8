#include "stoker/transform/sinc.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace stoker::transform {
namespace {
constexpr double kCrossings = 6, kRolloff = 0.99;
constexpr std::uint64_t kMostWeights = std::uint64_t{1} << 24;

double base_of(std::uint32_t from, std::uint32_t to) noexcept {
  return std::min(from, to) * kRolloff;
}
double reach_of(std::uint32_t from, std::uint32_t to) noexcept {
  return kCrossings * from / base_of(from, to);
}
}  // namespace

SincSize sinc_size(std::uint32_t from_hz, std::uint32_t to_hz) noexcept {
  SincSize size;
  if (from_hz == 0 || to_hz == 0) return size;
  const std::uint32_t common = std::gcd(from_hz, to_hz);
  size.from = from_hz / common;
  size.to = to_hz / common;
  const double taps = std::floor(2 * reach_of(size.from, size.to)) + 1;
  if (taps > static_cast<double>(kMostWeights)) return size;
  size.taps = (static_cast<std::uint32_t>(taps) + 7) / 8 * 8;
  size.usable = std::uint64_t{size.taps} * size.to <= kMostWeights && size.from <= kMostWeights;
  return size;
}

SincTable make_sinc(const SincSize& size, std::int32_t* first, float* weights) noexcept {
  const double base = base_of(size.from, size.to), reach = reach_of(size.from, size.to);
  const double scale = base / size.from;
  for (std::uint32_t phase = 0; phase < size.to; ++phase) {
    const double center = static_cast<double>(phase) * size.from / size.to;
    first[phase] = static_cast<std::int32_t>(std::ceil(center - reach));
    float* const k = weights + std::size_t{phase} * size.taps;
    for (std::uint32_t i = 0; i < size.taps; ++i) {
      const double t = (static_cast<double>(first[phase] + static_cast<std::int64_t>(i)) / size.from -
                        static_cast<double>(phase) / size.to) *
                       base;
      if (std::fabs(t) >= kCrossings) {
        k[i] = 0;
        continue;
      }
      const double window = std::cos(t * std::numbers::pi / kCrossings / 2);
      const double angle = t * std::numbers::pi;
      const double sinc = angle == 0 ? 1.0 : std::sin(angle) / angle;
      k[i] = static_cast<float>(sinc * window * window * scale);
    }
  }
  return {size.from, size.to, size.taps, first, weights};
}

std::uint64_t resampled_frames(std::uint64_t frames, std::uint32_t from_hz, std::uint32_t to_hz) noexcept {
  if (from_hz == 0 || from_hz == to_hz) return frames;
  const std::uint32_t common = std::gcd(from_hz, to_hz);
  const std::uint64_t from = from_hz / common, to = to_hz / common;
  // Whole turns first, so that no product leaves 64 bits.
  return frames / from * to + (frames % from * to + from - 1) / from;
}

void resample(const SincTable& table, const float* source, std::uint64_t frames, float* into,
              std::uint64_t count) noexcept {
  std::uint32_t phase = 0;
  std::int64_t turn = 0;
  const auto end = static_cast<std::int64_t>(frames);
  for (std::uint64_t n = 0; n < count; ++n) {
    const float* const k = table.weights + std::size_t{phase} * table.taps;
    const std::int64_t begin = turn + table.first[phase];
    float sums[8] = {};
    if (begin >= 0 && begin + table.taps <= end) {
      const float* const x = source + begin;
      for (std::uint32_t i = 0; i < table.taps; i += 8) {
        for (std::uint32_t j = 0; j < 8; ++j) sums[j] += x[i + j] * k[i + j];
      }
    } else {
      for (std::uint32_t i = 0; i < table.taps; ++i) {
        const std::int64_t at = begin + i;
        if (at >= 0 && at < end) sums[i % 8] += source[at] * k[i];
      }
    }
    into[n] = ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
    if (++phase == table.to) phase = 0, turn += table.from;
  }
}

}  // namespace stoker::transform
