// Decodes arbitrary bytes as an image, whole and in part, in every colour and depth, into memory of exactly the size
// needed, and turns it as its Exif says.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "stoker/codec/codec.h"
#include "stoker/codec/exif.h"

namespace stoker::fuzz {

inline constexpr std::uint64_t kMaxBytes = 4 << 20;  // of output: larger images only cost time

inline void decode_image(codec::Media media, codec::Bytes bytes) {
  static Budget budget(64 << 20);
  static Scratch scratch(&budget);
  const codec::Orientation orientation = codec::exif_orientation(media, bytes);
  if (orientation < codec::Orientation::upright || orientation > codec::Orientation::three_quarter_turn) std::abort();
  codec::ImageInfo info;
  if (!codec::probe_image(media, bytes, info).ok()) return;
  if (info.width == 0 || info.height == 0 || info.channels < 1 || info.channels > 4) std::abort();

  // The first bytes would be the same in every file, so the choice comes from the size.
  const std::uint32_t choice = static_cast<std::uint32_t>(bytes.size());
  codec::ImageOptions options;
  options.color = static_cast<codec::Color>(choice % 3);
  options.deep = choice / 3 % 2 != 0;
  options.fast = choice / 6 % 4 == 3;
  options.scale = options.fast ? 1u << choice / 24 % 4 : 1;
  options.strict = choice / 96 % 8 == 7;
  Rect region{0, 0, info.width, info.height};
  if (choice / 768 % 2 != 0 || choice % 5 == 0) {
    region = {info.width / 3, info.height / 4, (info.width + 1) / 2, (info.height + 1) / 2};
  }
  const Rect decoded = codec::decoded_region(media, options, region);
  Pixels pixels{nullptr,
                0,
                decoded.width,
                decoded.height,
                codec::output_channels(info, options),
                options.deep ? DType::u16 : DType::u8};
  pixels.stride_bytes = pixels.row_bytes();
  if (pixels.stride_bytes * decoded.height > kMaxBytes) return;
  std::vector<std::byte> into(pixels.stride_bytes * decoded.height);
  pixels.data = into.data();
  scratch.reset();
  if (!codec::decode_image(media, bytes, options, region, pixels, scratch).ok()) return;
  Pixels turned = pixels;
  if (codec::exchanges_sides(orientation)) std::swap(turned.width, turned.height);
  turned.stride_bytes = turned.row_bytes();
  std::vector<std::byte> upright(into.size());
  turned.data = upright.data();
  codec::turn_upright(orientation, pixels, turned);
}

}  // namespace stoker::fuzz
