#include "stoker/codec/codec.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "stoker/codec/array.h"
#include "stoker/codec/byte_order.h"
#include "stoker/codec/picture.h"

namespace stoker::codec {
namespace {

bool starts_with(Bytes bytes, std::string_view text) noexcept {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

bool ends_with_word(std::string_view path, std::string_view lower) noexcept {
  if (path.size() <= lower.size() || path[path.size() - lower.size() - 1] != '.') return false;
  const std::string_view end = path.substr(path.size() - lower.size());
  return std::equal(end.begin(), end.end(), lower.begin(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + ('a' - 'A') : a) == b; });
}

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

std::string_view name(Media media) noexcept {
  switch (media) {
    case Media::unknown:
      return "unknown";
    case Media::jpeg:
      return "jpeg";
    case Media::png:
      return "png";
    case Media::wav:
      return "wav";
    case Media::npy:
      return "npy";
    case Media::npz:
      return "npz";
  }
  return "unknown";
}

Media sniff(Bytes bytes) noexcept {
  if (starts_with(bytes, "\xFF\xD8\xFF")) return Media::jpeg;
  if (starts_with(bytes, "\x89PNG\r\n\x1A\n")) return Media::png;
  if (starts_with(bytes, "RIFF") || starts_with(bytes, "RF64")) {
    return bytes.size() >= 12 && little32(bytes.data() + 8) == tag("WAVE") ? Media::wav : Media::unknown;
  }
  if (starts_with(bytes, "\x93NUMPY")) return Media::npy;
  if (starts_with(bytes, "PK\x03\x04") || starts_with(bytes, "PK\x05\x06")) return Media::npz;
  return Media::unknown;
}

Media media_of_name(std::string_view path) noexcept {
  for (const std::string_view word : {"jpg", "jpeg", "jpe", "jfif"}) {
    if (ends_with_word(path, word)) return Media::jpeg;
  }
  if (ends_with_word(path, "png")) return Media::png;
  if (ends_with_word(path, "wav") || ends_with_word(path, "wave")) return Media::wav;
  if (ends_with_word(path, "npy")) return Media::npy;
  if (ends_with_word(path, "npz")) return Media::npz;
  return Media::unknown;
}

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

Rect decoded_region(Media media, const ImageOptions& options, const Rect& region) noexcept {
  if (media != Media::jpeg || !options.fast || options.scale <= 1) return region;
  const std::uint64_t scale = options.scale;
  const std::uint64_t left = region.x / scale, top = region.y / scale;
  const std::uint64_t right = (std::uint64_t{region.x} + region.width + scale - 1) / scale;
  const std::uint64_t bottom = (std::uint64_t{region.y} + region.height + scale - 1) / scale;
  return {static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(top), static_cast<std::uint32_t>(right - left),
          static_cast<std::uint32_t>(bottom - top)};
}

Result check_request(Media media, const ImageInfo& info, const ImageOptions& options, const Rect& region,
                     const Pixels& into) noexcept {
  if (std::uint64_t{info.width} * info.height > kMaxPixels) return failed(Code::too_large, "more than 2^30 pixels");
  if (region.width == 0 || region.height == 0 || std::uint64_t{region.x} + region.width > info.width ||
      std::uint64_t{region.y} + region.height > info.height) {
    return failed(Code::mismatch, "the region asked for is not inside the picture");
  }
  if (options.fast && options.scale != 1 && options.scale != 2 && options.scale != 4 && options.scale != 8) {
    return failed(Code::unsupported, "the scale is not 1, 2, 4 or 8");
  }
  const Rect decoded = decoded_region(media, options, region);
  if (into.width != decoded.width || into.height != decoded.height) {
    return failed(Code::mismatch, "the slot is not of the region's size");
  }
  if (into.channels != output_channels(info, options)) {
    return failed(Code::mismatch, "the slot has another channel count than the picture");
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

Result probe_image(Media media, Bytes bytes, ImageInfo& info) noexcept {
  info = {};
  switch (media) {
    case Media::jpeg:
      return probe_jpeg(bytes, info);
    case Media::png:
      return probe_png(bytes, info);
    default:
      return failed(Code::unsupported, "not a picture that Stoker reads (jpeg or png)");
  }
}

Result decode_image(Media media, Bytes bytes, const ImageOptions& options, const Rect& region, const Pixels& into,
                    Scratch& scratch, SeekIndex* index) noexcept {
  switch (media) {
    case Media::jpeg:
      return decode_jpeg(bytes, options, region, into, scratch, index);
    case Media::png:
      return decode_png(bytes, options, region, into, scratch);
    default:
      return failed(Code::unsupported, "not a picture that Stoker reads (jpeg or png)");
  }
}

Result decode_array(Media media, Bytes bytes, const ArrayInfo& info, std::byte* into, Scratch& scratch) noexcept {
  switch (media) {
    case Media::npy:
      return decode_npy(bytes, info, into);
    case Media::npz:
      return decode_npz(bytes, info, into, scratch);
    default:
      return failed(Code::unsupported, "not an array that Stoker reads (npy or npz)");
  }
}

}  // namespace stoker::codec
