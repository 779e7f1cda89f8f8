// The arithmetic on samples, as libjpeg-turbo does it by default on x86: the accurate integer DCT, triangle-filter
// ("fancy") upsampling, and YCbCr to RGB. Each kernel exists in plain C++ and with AVX2, with equal results for all
// inputs. Pure; safe from any thread.
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
  void (*transform)(const Block& a, const Block& b, const std::int16_t* quant, unsigned last, std::uint8_t* into_a,
                    std::uint8_t* into_b, std::size_t stride) noexcept;

  // Rows of `count` samples to 2 * count. There must be a sample on either side of the row: its neighbour, or a copy at
  // the picture's edge. `far` is the row above for the upper of two output rows, and the one below for the lower.
  void (*double_row)(const std::uint8_t* row, std::size_t count, std::uint8_t* into) noexcept;
  void (*double_between)(const std::uint8_t* near, const std::uint8_t* far, std::size_t count,
                         std::uint8_t* into) noexcept;
  // As many samples as there were; `rounding` is 1 for the upper of two output rows, 2 for the lower.
  void (*blend)(const std::uint8_t* near, const std::uint8_t* far, std::size_t count, unsigned rounding,
                std::uint8_t* into) noexcept;

  // Writes exactly 3 * count bytes.
  void (*to_rgb)(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, std::size_t count,
                 std::uint8_t* into) noexcept;
};

extern const Kernels kPlainKernels;
extern const Kernels kAvx2Kernels;  // the plain ones where there is no x86; call only if runs_fast_code()

}  // namespace stoker::codec::jpeg
