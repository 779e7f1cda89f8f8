#include "stoker/transform/box_blur.h"

#include <algorithm>
#include <cmath>

#include "stoker/transform/wide.h"

namespace stoker::transform {
namespace {

constexpr int kBoxPasses = 3;
constexpr std::uint32_t kBoxUnit = 1 << 24;  // weights are shares of it
constexpr std::int64_t kMostReach = 32;      // a radius that the policies never come near
constexpr std::size_t kMostTaps = 2 * kMostReach + 3;

// A box: `reach` pixels to each side count whole, and the next ones in part.
struct BlurBox {
  std::int64_t reach;
  std::uint32_t inner, outer;

  std::size_t taps() const noexcept { return static_cast<std::size_t>(2 * reach + 3); }
};

// The box that has a deviation of sigma after kBoxPasses (Gwosdek et al., 2011). In float where Pillow has floats.
BlurBox box_of(float sigma) noexcept {
  const float variance = sigma * sigma / kBoxPasses;
  const auto length = static_cast<float>(std::sqrt(12.0 * variance + 1.0));
  const auto whole = static_cast<float>(std::floor((length - 1.0) / 2.0));
  float part = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance);
  part /= 6 * (variance - (whole + 1) * (whole + 1));
  const float radius = whole + part;
  BlurBox box;
  box.reach = std::min(static_cast<std::int64_t>(radius), kMostReach);
  box.inner = static_cast<std::uint32_t>(static_cast<float>(kBoxUnit) / (radius * 2 + 1));
  box.outer = (kBoxUnit - static_cast<std::uint32_t>(2 * box.reach + 1) * box.inner) / 2;
  return box;
}

// out[x] of the pixels taps[..][x]; the first and the last count in part.
struct BoxOf {
  STOKER_KERNEL void run(const std::uint8_t* const* taps, std::size_t count, std::uint32_t inner, std::uint32_t outer,
                         std::size_t pixels, std::uint8_t* out) noexcept {
    constexpr std::size_t kBlock = 64;
    for (std::size_t first = 0; first < pixels; first += kBlock) {
      const std::size_t here = std::min(kBlock, pixels - first);
      std::uint32_t sums[kBlock] = {};
      const auto add = [&](const std::uint8_t* from, std::size_t size) __attribute__((always_inline)) {
        for (std::size_t x = 0; x < size; ++x) sums[x] += from[x];
      };
      const auto finish = [&](std::size_t size) __attribute__((always_inline)) {
        const std::uint8_t* const low = taps[0] + first;
        const std::uint8_t* const high = taps[count - 1] + first;
        for (std::size_t x = 0; x < size; ++x) {
          const std::uint32_t far = std::uint32_t{low[x]} + high[x];
          out[first + x] = static_cast<std::uint8_t>((sums[x] * inner + far * outer + kBoxUnit / 2) >> 24);
        }
      };
      for (std::size_t t = 1; t + 1 < count; ++t)
        here == kBlock ? add(taps[t] + first, kBlock) : add(taps[t] + first, here);
      here == kBlock ? finish(kBlock) : finish(here);
    }
  }
};

std::size_t inside_of(std::int64_t at, std::uint32_t size) noexcept {
  return static_cast<std::size_t>(std::clamp<std::int64_t>(at, 0, std::int64_t{size} - 1));
}

void blur_across(const Planes& from, const BlurBox& box, const Planes& into) noexcept {
  const std::uint8_t* taps[kMostTaps];
  const std::int64_t far = box.reach + 1;
  const auto first = static_cast<std::uint32_t>(std::min<std::int64_t>(far, from.width));
  const auto end = static_cast<std::uint32_t>(std::max<std::int64_t>(first, std::int64_t{from.width} - far));
  for (std::uint32_t c = 0; c < from.channels; ++c) {
    for (std::uint32_t y = 0; y < from.height; ++y) {
      const std::uint8_t* const row = from.row(c, y);
      std::uint8_t* const out = into.row(c, y);
      const auto edge = [&](std::uint32_t begin, std::uint32_t stop) {  // its neighbours repeat the last pixel
        for (std::int64_t x = begin; x < stop; ++x) {
          for (std::size_t t = 0; t < box.taps(); ++t)
            taps[t] = row + inside_of(x - far + static_cast<std::int64_t>(t), from.width);
          BoxOf::run(taps, box.taps(), box.inner, box.outer, 1, out + x);
        }
      };
      edge(0, first);
      for (std::size_t t = 0; t < box.taps() && end > first; ++t)
        taps[t] = row + (first + t - static_cast<std::size_t>(far));
      if (end > first)
        run_kernel<BoxOf>(&taps[0], box.taps(), box.inner, box.outer, std::size_t{end - first}, out + first);
      edge(end, from.width);
    }
  }
}

void blur_down(const Planes& from, const BlurBox& box, const Planes& into) noexcept {
  const std::uint8_t* taps[kMostTaps];
  for (std::uint32_t c = 0; c < from.channels; ++c) {
    for (std::uint32_t y = 0; y < from.height; ++y) {
      for (std::size_t t = 0; t < box.taps(); ++t) {
        const std::int64_t at = std::int64_t{y} - box.reach - 1 + static_cast<std::int64_t>(t);
        taps[t] = from.row(c, static_cast<std::uint32_t>(inside_of(at, from.height)));
      }
      run_kernel<BoxOf>(&taps[0], box.taps(), box.inner, box.outer, std::size_t{from.width}, into.row(c, y));
    }
  }
}

}  // namespace

void box_blur(Canvas& canvas, double radius) noexcept {
  const BlurBox box = box_of(static_cast<float>(radius));
  for (const bool is_across : {true, false}) {
    for (int pass = 0; pass < kBoxPasses; ++pass) {
      const Planes from = canvas.image(), into = canvas.spare();
      is_across ? blur_across(from, box, into) : blur_down(from, box, into);
      canvas.turn(into);
    }
  }
}

}  // namespace stoker::transform
