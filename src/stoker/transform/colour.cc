#include "stoker/transform/colour.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "stoker/transform/wide.h"

namespace stoker::transform {
namespace {

// convert("L"): ITU-R 601-2 in 16 bits.
STOKER_KERNEL std::int32_t gray_of(std::int32_t r, std::int32_t g, std::int32_t b) noexcept {
  return (r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16;
}

// Image.blend. Inside 0..1 nothing needs clipping, and clipping changes nothing.
STOKER_KERNEL std::uint8_t blended(std::int32_t degenerate, std::int32_t value, float factor) noexcept {
  const float mixed = static_cast<float>(degenerate) + factor * static_cast<float>(value - degenerate);
  return static_cast<std::uint8_t>(static_cast<std::int32_t>(std::min(std::max(mixed, 0.0F), 255.0F)));
}

struct SumGray {
  STOKER_KERNEL void run(const std::uint8_t* r, const std::uint8_t* g, const std::uint8_t* b, std::size_t count,
                         std::uint32_t* sum) noexcept {
    std::uint32_t all = 0;
    for (std::size_t i = 0; i < count; ++i) all += static_cast<std::uint32_t>(gray_of(r[i], g[i], b[i]));
    *sum = all;
  }
};

struct Saturate {
  STOKER_KERNEL void run(std::uint8_t* __restrict r, std::uint8_t* __restrict g, std::uint8_t* __restrict b,
                         std::size_t count, float factor) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      const std::int32_t gray = gray_of(r[i], g[i], b[i]);
      r[i] = blended(gray, r[i], factor);
      g[i] = blended(gray, g[i], factor);
      b[i] = blended(gray, b[i], factor);
    }
  }
};

struct Blend {
  STOKER_KERNEL void run(const std::uint8_t* __restrict degenerate, std::uint8_t* __restrict image, std::size_t count,
                         float factor) noexcept {
    for (std::size_t i = 0; i < count; ++i) image[i] = blended(degenerate[i], image[i], factor);
  }
};

struct Gray {
  STOKER_KERNEL void run(std::uint8_t* __restrict r, const std::uint8_t* __restrict g, const std::uint8_t* __restrict b,
                         std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) r[i] = static_cast<std::uint8_t>(gray_of(r[i], g[i], b[i]));
  }
};

// round() of a number that is not negative: halves away from 0.
STOKER_KERNEL std::int32_t rounded_up(double value) noexcept {
  const auto whole = static_cast<std::int32_t>(value);
  return whole + static_cast<std::int32_t>((value - whole) * 2);
}

// Choices without branches: all bits or none, and what they choose.
STOKER_KERNEL std::int32_t equal(std::int32_t a, std::int32_t b) noexcept {
  return -static_cast<std::int32_t>(a == b);
}
STOKER_KERNEL std::int32_t pick(std::int32_t mask, std::int32_t yes, std::int32_t no) noexcept {
  return (yes & mask) | (no & ~mask);
}

// rgb2hsv and hsv2rgb of Pillow, with their changes between float and double. Blocks of one size, without branches, so
// that each loop becomes vectors.
struct TurnHue {
  static constexpr std::size_t kBlock = 64;

  STOKER_KERNEL void run(std::uint8_t* red, std::uint8_t* green, std::uint8_t* blue, std::size_t count,
                         std::int32_t shift) noexcept {
    std::size_t at = 0;
    for (; at + kBlock <= count; at += kBlock) block(red + at, green + at, blue + at, shift);
    if (at == count) return;
    std::uint8_t rest[3][kBlock] = {};
    const std::size_t left = count - at;
    for (std::size_t i = 0; i < left; ++i)
      rest[0][i] = red[at + i], rest[1][i] = green[at + i], rest[2][i] = blue[at + i];
    block(rest[0], rest[1], rest[2], shift);
    for (std::size_t i = 0; i < left; ++i)
      red[at + i] = rest[0][i], green[at + i] = rest[1][i], blue[at + i] = rest[2][i];
  }

  STOKER_KERNEL void block(std::uint8_t* __restrict red, std::uint8_t* __restrict green, std::uint8_t* __restrict blue,
                           std::int32_t shift) noexcept {
    std::int32_t r[kBlock], g[kBlock], b[kBlock], hue[kBlock], saturation[kBlock];
    for (std::size_t i = 0; i < kBlock; ++i) r[i] = red[i], g[i] = green[i], b[i] = blue[i];
    for (std::size_t i = 0; i < kBlock; ++i) {
      const std::int32_t red_i = r[i], green_i = g[i], blue_i = b[i];
      const std::int32_t larger = red_i > green_i ? red_i : green_i, smaller = red_i > green_i ? green_i : red_i;
      const std::int32_t most = larger > blue_i ? larger : blue_i, least = smaller > blue_i ? blue_i : smaller;
      const std::int32_t range = most - least, is_gray = range == 0 ? 1 : 0;
      const std::int32_t is_red = equal(red_i, most), is_green = equal(green_i, most);
      // h is bc - gc, 2 + rc - bc or 4 + gc - rc. In double each is exact, and rounded once to float.
      const std::int32_t plus = most - pick(is_red, blue_i, pick(is_green, red_i, green_i));
      const std::int32_t minus = most - pick(is_red, green_i, pick(is_green, blue_i, red_i));
      const std::int32_t base = pick(is_red, 0, pick(is_green, 2, 4));
      const auto cr = static_cast<float>(range + is_gray);
      const float up = static_cast<float>(plus) / cr, down = static_cast<float>(minus) / cr;
      const float share = cr / static_cast<float>(most + is_gray);
      const auto h =
          static_cast<float>(static_cast<double>(base) + static_cast<double>(up) - static_cast<double>(down));
      const double turned = h / 6.0 + 1.0;
      const auto part = static_cast<float>(turned - static_cast<double>(static_cast<std::int32_t>(turned)));
      const auto uh = static_cast<std::int32_t>(part * 255.0), us = static_cast<std::int32_t>(share * 255.0);
      hue[i] = (uh * (1 - is_gray) + shift) & 255;
      saturation[i] = us * (1 - is_gray);
      r[i] = most;
    }
    for (std::size_t i = 0; i < kBlock; ++i) {
      const double angle = static_cast<float>(hue[i]) * 6.0 / 255.0;
      const auto sector = static_cast<std::int32_t>(angle);  // 0 to 6
      const auto f = static_cast<float>(angle - static_cast<float>(sector));
      const auto fs = static_cast<float>(static_cast<float>(saturation[i]) / 255.0);
      const auto v = static_cast<float>(r[i]);
      const std::int32_t p = rounded_up(v * (1.0 - fs));
      const std::int32_t q = rounded_up(v * (1.0 - static_cast<double>(fs * f)));
      const std::int32_t t = rounded_up(v * (1.0 - fs * (1.0 - f)));
      const std::int32_t of = sector & ~equal(sector, 6), top = r[i];
      // No saturation: p, q and t are the value itself.
      const std::int32_t is_0 = equal(of, 0), is_1 = equal(of, 1), is_2 = equal(of, 2), is_3 = equal(of, 3);
      const std::int32_t is_4 = equal(of, 4), is_5 = equal(of, 5);
      r[i] = pick(is_0 | is_5, top, pick(is_1, q, pick(is_4, t, p)));
      g[i] = pick(is_1 | is_2, top, pick(is_0, t, pick(is_3, q, p)));
      b[i] = pick(is_3 | is_4, top, pick(is_2, t, pick(is_5, q, p)));
    }
    for (std::size_t i = 0; i < kBlock; ++i) {
      red[i] = static_cast<std::uint8_t>(r[i]);
      green[i] = static_cast<std::uint8_t>(g[i]);
      blue[i] = static_cast<std::uint8_t>(b[i]);
    }
  }
};

void apply_table(const ByteTable& table, std::uint8_t* plane, std::size_t count) noexcept {
  const std::uint8_t* const entries = table.data();
  for (std::size_t i = 0; i < count; ++i) plane[i] = entries[plane[i]];
}

}  // namespace

void ByteTables::add(std::uint32_t c, const ByteTable& table) noexcept {
  if (!is_used) {
    for (ByteTable& each : of) {
      for (std::size_t v = 0; v < 256; ++v) each[v] = static_cast<std::uint8_t>(v);
    }
    is_used = true;
  }
  for (std::uint8_t& value : of[c]) value = table[value];
}

void apply_tables(const ByteTables& tables, const Planes& image) noexcept {
  if (!tables.is_used) return;
  for (std::uint32_t c = 0; c < image.channels; ++c) apply_table(tables.of[c], image.channel(c), image.plane());
}

ByteTable blend_table(std::uint8_t degenerate, double factor) noexcept {
  ByteTable table;
  for (std::int32_t v = 0; v < 256; ++v)
    table[static_cast<std::size_t>(v)] = blended(degenerate, v, static_cast<float>(factor));
  return table;
}

ByteTable posterize_table(std::uint32_t bits) noexcept {
  ByteTable table;
  const auto mask = static_cast<std::uint8_t>(~((1u << (8 - bits)) - 1));
  for (std::size_t v = 0; v < 256; ++v) table[v] = static_cast<std::uint8_t>(v & mask);
  return table;
}

ByteTable solarize_table(double threshold) noexcept {
  ByteTable table;
  for (std::size_t v = 0; v < 256; ++v)
    table[v] = static_cast<std::uint8_t>(static_cast<double>(v) < threshold ? v : 255 - v);
  return table;
}

ByteTable solarize_add_table(std::uint32_t added) noexcept {
  ByteTable table;
  for (std::uint32_t v = 0; v < 256; ++v) table[v] = static_cast<std::uint8_t>(v < 128 ? std::min(255u, v + added) : v);
  return table;
}

ByteTable invert_table() noexcept {
  return solarize_table(-1);
}

std::uint8_t mean_gray(const Planes& image) noexcept {
  constexpr std::size_t kPiece = 1 << 20;  // sums of bytes fit 32 bits
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < image.plane(); at += kPiece) {
    const std::size_t count = std::min(kPiece, image.plane() - at);
    const std::uint8_t* const first = image.data + at;
    std::uint32_t piece = 0;
    if (image.channels == 3) {
      run_kernel<SumGray>(first, first + image.plane(), first + 2 * image.plane(), count, &piece);
    } else {
      for (std::size_t i = 0; i < count; ++i) piece += first[i];
    }
    sum += piece;
  }
  return static_cast<std::uint8_t>(static_cast<double>(sum) / static_cast<double>(image.plane()) + 0.5);
}

void saturate(const Planes& image, double factor) noexcept {
  run_kernel<Saturate>(image.channel(0), image.channel(1), image.channel(2), image.plane(), static_cast<float>(factor));
}

void turn_hue(const Planes& image, double turn) noexcept {
  const auto shift = static_cast<std::int32_t>(turn * 255);
  run_kernel<TurnHue>(image.channel(0), image.channel(1), image.channel(2), image.plane(), shift);
}

void make_gray(const Planes& image, bool all) noexcept {
  run_kernel<Gray>(image.channel(0), static_cast<const std::uint8_t*>(image.channel(1)),
                   static_cast<const std::uint8_t*>(image.channel(2)), image.plane());
  for (std::uint32_t c = 1; all && c < 3; ++c) std::memcpy(image.channel(c), image.channel(0), image.plane());
}

void blend(const Planes& degenerate, const Planes& image, double factor) noexcept {
  run_kernel<Blend>(static_cast<const std::uint8_t*>(degenerate.data), image.data, image.bytes(),
                    static_cast<float>(factor));
}

}  // namespace stoker::transform
