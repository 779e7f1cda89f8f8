#include "stoker/codec/jpeg/kernels.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace stoker::codec::jpeg {
namespace {

std::int16_t wrapped(std::int32_t value) noexcept {
  return static_cast<std::int16_t>(value);
}

std::int16_t clamped(std::int32_t value) noexcept {
  return static_cast<std::int16_t>(std::clamp(value, -32768, 32767));
}

// Eight inputs to eight outputs, in 13-bit fixed point. Sums of two inputs have 16 bits, and products 32, as in
// libjpeg-turbo's vector code: damaged files reach their limits.
std::array<std::int32_t, 8> transform_line(const std::int16_t* in, std::size_t step) noexcept {
  const auto x = [=](int i) noexcept { return std::int32_t{in[static_cast<std::size_t>(i) * step]}; };
  const auto mul2 = [](std::int32_t a, std::int32_t factor_a, std::int32_t b, std::int32_t factor_b) noexcept {
    return static_cast<std::uint32_t>(a * factor_a) + static_cast<std::uint32_t>(b * factor_b);
  };
  const std::uint32_t even0 = static_cast<std::uint32_t>(wrapped(x(0) + x(4))) << 13;
  const std::uint32_t even1 = static_cast<std::uint32_t>(wrapped(x(0) - x(4))) << 13;
  const std::uint32_t even2 = mul2(x(2), 4433, x(6), 4433 - 15137);
  const std::uint32_t even3 = mul2(x(2), 4433 + 6270, x(6), 4433);
  const std::uint32_t sums[4] = {even0 + even3, even1 + even2, even1 - even2, even0 - even3};

  const std::int32_t z3 = wrapped(x(7) + x(3)), z4 = wrapped(x(5) + x(1));
  const std::uint32_t a = mul2(z3, 9633 - 16069, z4, 9633);
  const std::uint32_t b = mul2(z3, 9633, z4, 9633 - 3196);
  const std::uint32_t odds[4] = {mul2(x(1), 12299 - 7373, x(7), -7373) + b, mul2(x(3), 25172 - 20995, x(5), -20995) + a,
                                 mul2(x(5), 16819 - 20995, x(3), -20995) + b, mul2(x(7), 2446 - 7373, x(1), -7373) + a};

  std::array<std::int32_t, 8> out;
  for (std::size_t i = 0; i < 4; ++i) {
    out[i] = static_cast<std::int32_t>(sums[i] + odds[i]);
    out[7 - i] = static_cast<std::int32_t>(sums[i] - odds[i]);
  }
  return out;
}

std::int32_t rounded(std::int32_t value, int bits) noexcept {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(value) + (1u << (bits - 1))) >> bits;
}

void transform_block(const Block& block, const std::int16_t* quant, std::uint8_t* into, std::size_t stride) noexcept {
  std::int16_t in[64], columns[64];
  bool first_row_only = true;
  for (std::size_t i = 0; i < 64; ++i) {
    in[i] = wrapped(block.coefficient[i] * quant[i]);
    first_row_only = first_row_only && (i < 8 || block.coefficient[i] == 0);
  }
  for (std::size_t x = 0; x < 8; ++x) {
    // The same but for values beyond 8191, which libjpeg-turbo lets overflow here and limits below.
    if (first_row_only) {
      for (std::size_t y = 0; y < 8; ++y) columns[y * 8 + x] = wrapped(in[x] * 4);
      continue;
    }
    const std::array<std::int32_t, 8> line = transform_line(in + x, 8);
    for (std::size_t y = 0; y < 8; ++y) columns[y * 8 + x] = clamped(rounded(line[y], 11));
  }
  for (std::size_t y = 0; y < 8; ++y) {
    const std::array<std::int32_t, 8> line = transform_line(columns + y * 8, 1);
    for (std::size_t x = 0; x < 8; ++x) {
      into[y * stride + x] = static_cast<std::uint8_t>(std::clamp(rounded(line[x], 18), -128, 127) + 128);
    }
  }
}

void transform(const Block& a, const Block& b, const std::int16_t* quant, unsigned, std::uint8_t* into_a,
               std::uint8_t* into_b, std::size_t stride) noexcept {
  transform_block(a, quant, into_a, stride);
  transform_block(b, quant, into_b, stride);
}

// ---- reduced: the sums of neighbouring outputs, so that the fourth frequency falls out (and to 2 x 2 every even one)

struct Dequantized {
  std::int16_t at[64];
  bool first_row_only = true;  // but for the row that is not used

  Dequantized(const Block& block, const std::int16_t* quant) noexcept {
    for (std::size_t i = 0; i < 64; ++i) {
      at[i] = wrapped(block.coefficient[i] * quant[i]);
      first_row_only = first_row_only && (i < 8 || i / 8 == 4 || block.coefficient[i] == 0);
    }
  }
};

std::uint32_t product(std::int32_t a, std::int32_t b) noexcept {
  return static_cast<std::uint32_t>(a * b);
}

std::array<std::int32_t, 4> reduce_line_to_4(const std::int16_t* in, std::size_t step) noexcept {
  const auto x = [=](std::size_t i) noexcept { return std::int32_t{in[i * step]}; };
  const std::uint32_t even0 = static_cast<std::uint32_t>(x(0)) << 14;
  const std::uint32_t even2 = product(x(2), 15137) + product(x(6), -6270);
  const std::uint32_t outer = product(x(1), 20995) + product(x(3), 7373) + product(x(5), -4926) + product(x(7), -4176);
  const std::uint32_t inner = product(x(1), 8697) + product(x(3), -17799) + product(x(5), 11893) + product(x(7), -1730);
  const std::uint32_t sums[4] = {even0 + even2 + outer, even0 - even2 + inner, even0 - even2 - inner,
                                 even0 + even2 - outer};
  std::array<std::int32_t, 4> out;
  for (std::size_t i = 0; i < 4; ++i) out[i] = static_cast<std::int32_t>(sums[i]);
  return out;
}

std::uint8_t sample_of(std::int32_t value) noexcept {
  return static_cast<std::uint8_t>(std::clamp(value, -128, 127) + 128);
}

void reduce_to_4(const Block& block, const std::int16_t* quant, std::uint8_t* into, std::size_t stride) noexcept {
  const Dequantized in(block, quant);
  std::int16_t columns[4 * 8];
  for (std::size_t x = 0; x < 8; ++x) {
    const std::array<std::int32_t, 4> line = reduce_line_to_4(in.at + x, 8);
    for (std::size_t y = 0; y < 4; ++y) {
      columns[y * 8 + x] = in.first_row_only ? wrapped(in.at[x] * 4) : clamped(rounded(line[y], 12));
    }
  }
  for (std::size_t y = 0; y < 4; ++y) {
    const std::array<std::int32_t, 4> line = reduce_line_to_4(columns + y * 8, 1);
    for (std::size_t x = 0; x < 4; ++x) into[y * stride + x] = sample_of(rounded(line[x], 19));
  }
}

std::uint32_t odd_of_2(std::int32_t x1, std::int32_t x3, std::int32_t x5, std::int32_t x7) noexcept {
  return product(x1, 29692) + product(x3, -10426) + product(x5, 6967) + product(x7, -5906);
}

void reduce_to_2(const Block& block, const std::int16_t* quant, std::uint8_t* into, std::size_t stride) noexcept {
  const Dequantized in(block, quant);
  std::int32_t columns[2][8];
  for (const std::size_t x : {0u, 1u, 3u, 5u, 7u}) {
    const std::uint32_t even = static_cast<std::uint32_t>(in.at[x]) << 15;
    const std::uint32_t odd = odd_of_2(in.at[8 + x], in.at[24 + x], in.at[40 + x], in.at[56 + x]);
    columns[0][x] = rounded(static_cast<std::int32_t>(even + odd), 13);
    columns[1][x] = rounded(static_cast<std::int32_t>(even - odd), 13);
  }
  for (std::size_t y = 0; y < 2; ++y) {
    const std::int32_t* const x = columns[y];
    const std::uint32_t even = static_cast<std::uint32_t>(x[0]) << 15;  // the others have 16 bits
    const std::uint32_t odd = odd_of_2(clamped(x[1]), clamped(x[3]), clamped(x[5]), clamped(x[7]));
    into[y * stride] = sample_of(rounded(static_cast<std::int32_t>(even + odd), 20));
    into[y * stride + 1] = sample_of(rounded(static_cast<std::int32_t>(even - odd), 20));
  }
}

void transform_to_4(const Block& a, const Block& b, const std::int16_t* quant, unsigned, std::uint8_t* into_a,
                    std::uint8_t* into_b, std::size_t stride) noexcept {
  reduce_to_4(a, quant, into_a, stride);
  reduce_to_4(b, quant, into_b, stride);
}

void transform_to_2(const Block& a, const Block& b, const std::int16_t* quant, unsigned, std::uint8_t* into_a,
                    std::uint8_t* into_b, std::size_t stride) noexcept {
  reduce_to_2(a, quant, into_a, stride);
  reduce_to_2(b, quant, into_b, stride);
}

// ---- upsampling and colours

void double_row(const std::uint8_t* row, std::size_t count, std::uint8_t* into) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    into[2 * i] = static_cast<std::uint8_t>((3 * row[i] + (row - 1)[i] + 1) >> 2);
    into[2 * i + 1] = static_cast<std::uint8_t>((3 * row[i] + row[i + 1] + 2) >> 2);
  }
}

void double_between(const std::uint8_t* near, const std::uint8_t* far, std::size_t count, std::uint8_t* into) noexcept {
  int before = 3 * near[-1] + far[-1], here = 3 * near[0] + far[0];
  for (std::size_t i = 0; i < count; ++i) {
    const int after = 3 * near[i + 1] + far[i + 1];
    into[2 * i] = static_cast<std::uint8_t>((3 * here + before + 8) >> 4);
    into[2 * i + 1] = static_cast<std::uint8_t>((3 * here + after + 7) >> 4);
    before = here;
    here = after;
  }
}

void blend(const std::uint8_t* near, const std::uint8_t* far, std::size_t count, unsigned rounding,
           std::uint8_t* into) noexcept {
  for (std::size_t i = 0; i < count; ++i) into[i] = static_cast<std::uint8_t>((3u * near[i] + far[i] + rounding) >> 2);
}

void to_rgb(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, std::size_t count,
            std::uint8_t* into) noexcept {
  constexpr int kHalf = 1 << 15;
  for (std::size_t i = 0; i < count; ++i, into += 3) {
    const int blue = cb[i] - 128, red = cr[i] - 128;
    const int values[3] = {y[i] + ((91881 * red + kHalf) >> 16), y[i] + ((-22554 * blue - 46802 * red + kHalf) >> 16),
                           y[i] + ((116130 * blue + kHalf) >> 16)};
    for (int c = 0; c < 3; ++c) into[c] = static_cast<std::uint8_t>(std::clamp(values[c], 0, 255));
  }
}

void to_rgb_repeated(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, std::size_t odd,
                     std::size_t count, std::uint8_t* into) noexcept {
  for (std::size_t i = 0; i < count; ++i) to_rgb(y + i, cb + (i + odd) / 2, cr + (i + odd) / 2, 1, into + 3 * i);
}

}  // namespace

constexpr Kernels kPlainKernels = {transform,      transform_to_4, transform_to_2, double_row,
                                   double_between, blend,          to_rgb,         to_rgb_repeated};

}  // namespace stoker::codec::jpeg
