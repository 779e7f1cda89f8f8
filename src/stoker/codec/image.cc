#include "stoker/codec/image.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "stoker/codec/byte_order.h"

namespace stoker::codec {
namespace {

// Pillow's way from 16 to 8 bits: colours keep their high byte, gray is clipped.
template <typename To, typename From, bool kGray>
constexpr To narrowed(From value) noexcept {
  if constexpr (sizeof(To) >= sizeof(From)) {
    return value;
  } else {
    return static_cast<To>(kGray ? std::min<From>(value, 255) : value >> 8);
  }
}

template <typename From, typename To, int kChannels>
void store(const Samples& row, Color color, std::byte* into) noexcept {
  const std::byte* in = row.data;
  const auto sample = [&in](int channel) noexcept {
    return narrowed<To, From, kChannels == 1>(load<From>(in + sizeof(From) * channel));
  };
  const auto put = [&into](int channel, To value) noexcept {
    std::memcpy(into + sizeof(To) * channel, &value, sizeof(To));
  };
  const auto each = [&](int out_channels, auto&& pixel) noexcept {
    for (std::uint32_t i = 0; i < row.count; ++i) {
      pixel();
      in += sizeof(From) * kChannels;
      into += sizeof(To) * out_channels;
    }
  };
  if (color == Color::keep || (color == Color::rgb && kChannels == 3) || (color == Color::gray && kChannels == 1)) {
    if constexpr (std::is_same_v<From, To>) {
      std::memcpy(into, in, sizeof(To) * kChannels * row.count);
    } else {
      each(kChannels, [&] {
        for (int c = 0; c < kChannels; ++c) put(c, sample(c));
      });
    }
  } else if (color == Color::rgb) {
    each(3, [&] {
      for (int c = 0; c < 3; ++c) put(c, sample(kChannels < 3 ? 0 : c));
    });
  } else {
    each(1, [&] {
      if constexpr (kChannels < 3) {
        put(0, sample(0));
      } else {
        put(0, static_cast<To>(luma(sample(0), sample(1), sample(2))));
      }
    });
  }
}

template <typename From, typename To>
void store(const Samples& row, Color color, std::byte* into) noexcept {
  switch (row.channels) {
    case 1:
      return store<From, To, 1>(row, color, into);
    case 2:
      return store<From, To, 2>(row, color, into);
    case 3:
      return store<From, To, 3>(row, color, into);
    case 4:
      return store<From, To, 4>(row, color, into);
  }
}

}  // namespace

std::uint8_t output_channels(const ImageInfo& info, const ImageOptions& options) noexcept {
  switch (options.color) {
    case Color::rgb:
      return 3;
    case Color::gray:
      return 1;
    case Color::keep:
      return info.channels;
  }
  return info.channels;
}

Rect scaled_region(const ImageOptions& options, const Rect& region) noexcept {
  if (!options.fast || options.scale <= 1) return region;
  const std::uint64_t scale = options.scale;
  const std::uint64_t left = region.x / scale, top = region.y / scale;
  const std::uint64_t right = (std::uint64_t{region.x} + region.width + scale - 1) / scale;
  const std::uint64_t bottom = (std::uint64_t{region.y} + region.height + scale - 1) / scale;
  return {static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(top), static_cast<std::uint32_t>(right - left),
          static_cast<std::uint32_t>(bottom - top)};
}

Result check_request(const ImageInfo& info, const ImageOptions& options, const Rect& region, const Rect& decoded,
                     const Pixels& into) noexcept {
  if (std::uint64_t{info.width} * info.height > kMaxPixels) return failed(Code::too_large, "more than 2^30 pixels");
  if (region.width == 0 || region.height == 0 || std::uint64_t{region.x} + region.width > info.width ||
      std::uint64_t{region.y} + region.height > info.height) {
    return failed(Code::mismatch, "the region asked for is not inside the image");
  }
  if (options.fast && options.scale != 1 && options.scale != 2 && options.scale != 4 && options.scale != 8) {
    return failed(Code::unsupported, "the scale is not 1, 2, 4 or 8");
  }
  if (into.width != decoded.width || into.height != decoded.height) {
    return failed(Code::mismatch, "the slot is not of the region's size");
  }
  if (into.channels != output_channels(info, options)) {
    return failed(Code::mismatch, "the slot has another channel count than the image");
  }
  if (into.dtype != (options.deep ? DType::u16 : DType::u8)) {
    return failed(Code::mismatch, "the slot has another element type than was asked for");
  }
  if (into.data == nullptr || (into.height > 1 && into.stride_bytes < into.row_bytes())) {
    return failed(Code::mismatch, "the slot's rows overlap");
  }
  return {};
}

void store_row(const Samples& row, Color color, DType dtype, std::byte* into) noexcept {
  if (row.wide) {
    return dtype == DType::u16 ? store<std::uint16_t, std::uint16_t>(row, color, into)
                               : store<std::uint16_t, std::uint8_t>(row, color, into);
  }
  return dtype == DType::u16 ? store<std::uint8_t, std::uint16_t>(row, color, into)
                             : store<std::uint8_t, std::uint8_t>(row, color, into);
}

}  // namespace stoker::codec
