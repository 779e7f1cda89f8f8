// The arithmetic on samples, as libjpeg-turbo does it on x86: the accurate integer DCT and its reduced forms,
// triangle-filter ("fancy") upsampling, and YCbCr to RGB. Each kernel exists in plain C++ and with AVX2, with equal
// results for all inputs. Pure; safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "stoker/codec/jpeg/entropy.h"

namespace stoker::codec::jpeg {

// Kernels on rows read up to kRowSlack bytes behind the last sample they need, and write as many behind the last one
// they give, unless said otherwise.
inline constexpr std::size_t kRowSlack = 64;

struct Kernels {
  // Two blocks of the same component to 8 x 8 samples each. `last` is a zigzag index beyond which both have only zeros.
  using Transform = void(const Block& a, const Block& b, const std::int16_t* quant, unsigned last, std::uint8_t* into_a,
                         std::uint8_t* into_b, std::size_t stride) noexcept;
  Transform* transform;
  // The same to 4 x 4 and to 2 x 2 samples: the means of those that transform() gives, but for rounding.
  Transform* transform_to_4;
  Transform* transform_to_2;

  // Rows of `count` samples to 2 * count. There must be a sample on either side of the row: its neighbour, or a copy at
  // the image's edge. `far` is the row above for the upper of two output rows, and the one below for the lower.
  void (*double_row)(const std::uint8_t* row, std::size_t count, std::uint8_t* into) noexcept;
  void (*double_between)(const std::uint8_t* near, const std::uint8_t* far, std::size_t count,
                         std::uint8_t* into) noexcept;
  // As many samples as there were; `rounding` is 1 for the upper of two output rows, 2 for the lower.
  void (*blend)(const std::uint8_t* near, const std::uint8_t* far, std::size_t count, unsigned rounding,
                std::uint8_t* into) noexcept;

  // Writes exactly 3 * count bytes.
  void (*to_rgb)(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, std::size_t count,
                 std::uint8_t* into) noexcept;
  // The same if there are half as many columns of Cb and Cr, which are repeated. `odd` is 1 if the first pixel is the
  // second that has its Cb and Cr, else 0.
  void (*to_rgb_repeated)(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, std::size_t odd,
                          std::size_t count, std::uint8_t* into) noexcept;
};

// One sample for a whole block; beyond the range of a whole file it wraps around as libjpeg's table does.
inline std::uint8_t mean_sample(std::int16_t dc, std::int16_t quant) noexcept {
  const int value = ((dc * quant + 4) >> 3) & 1023;
  return static_cast<std::uint8_t>(value < 128 ? value + 128 : value < 512 ? 255 : value < 896 ? 0 : value - 896);
}

extern const Kernels kPlainKernels;
extern const Kernels kAvx2Kernels;  // the plain ones where there is no x86; call only if runs_fast_code()

}  // namespace stoker::codec::jpeg
