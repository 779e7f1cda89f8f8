// What the codecs of images share: checking a request, and storing a row of samples.
// Private to this folder; safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "stoker/codec/codec.h"
#include "stoker/codec/exif.h"

namespace stoker::codec {

Result probe_jpeg(Bytes bytes, ImageInfo& info) noexcept;
// How JPEG files are decoded that our own decoder declines.
Result decode_by_libjpeg(Bytes bytes, const ImageOptions& options, const Rect& region, const Pixels& into,
                         Scratch& scratch) noexcept;

Orientation orientation_of_jpeg(Bytes bytes) noexcept;
Orientation orientation_of_png(Bytes bytes) noexcept;
Orientation orientation_of_webp(Bytes bytes) noexcept;

// decoded_region() of codecs that decode at 1/scale.
Rect scaled_region(const ImageOptions& options, const Rect& region) noexcept;

// Refuses images above kMaxPixels, a `region` outside the image, and an `into` that has not the size of `decoded`, or
// another depth or channel count.
Result check_request(const ImageInfo& info, const ImageOptions& options, const Rect& region, const Rect& decoded,
                     const Pixels& into) noexcept;

// `count` pixels as a file has them, `channels` interleaved samples of 8 or 16 bits each (machine order), any
// alignment.
struct Samples {
  const std::byte* data = nullptr;
  std::uint32_t count = 0;
  std::uint8_t channels = 0;
  bool wide = false;
};

// Stores a row as `color` asks, in `channels` samples of `dtype` per pixel.
void store_row(const Samples& row, Color color, DType dtype, std::byte* into) noexcept;

// Pillow's luma: ITU-R 601 in 16-bit fixed point. Exact for samples of 8 and 16 bits.
constexpr std::uint32_t luma(std::uint32_t r, std::uint32_t g, std::uint32_t b) noexcept {
  return (r * 19595u + g * 38470u + b * 7471u + 0x8000u) >> 16;
}

}  // namespace stoker::codec
