// One line of the table of codecs. Private to this folder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

#include "stoker/codec/codec.h"
#include "stoker/codec/exif.h"

namespace stoker::codec {

// Bytes that files of a format have at `offset`. '?' stands for any byte. Empty: none.
struct Magic {
  std::size_t offset = 0;
  std::string_view bytes;
};

// The functions of codec.h, for one format.
struct ImageCodec {
  Result (*probe)(Bytes, ImageInfo&) noexcept;
  Result (*decode)(Bytes, const ImageOptions&, const Rect&, const Pixels&, Scratch&, SeekIndex*) noexcept;
  Orientation (*orientation)(Bytes) noexcept = nullptr;  // null: always upright
  bool scales = false;                                   // decodes at 1/2, 1/4 and 1/8
  bool seeks = false;                                    // uses and extends a SeekIndex
};

struct AudioCodec {
  Result (*probe)(Bytes, AudioInfo&) noexcept;
  Result (*decode)(Bytes, const AudioInfo&, std::uint64_t first, std::uint64_t frames, float* into,
                   std::size_t channel_stride, Scratch&) noexcept;
  Result (*verify)(Bytes, const AudioInfo&, Scratch&) noexcept = nullptr;  // null: there is nothing to compare
};

struct ArrayCodec {
  Result (*probe)(Bytes, ArrayInfo&, Scratch&) noexcept;
  Result (*decode)(Bytes, const ArrayInfo&, std::byte* into, Scratch&) noexcept;
  bool is_plain = false;  // the elements lie in the file as they are
  std::size_t (*list)(Bytes, std::span<std::string_view> names) noexcept = nullptr;  // null: it holds one array
  Result (*probe_member)(Bytes, std::string_view member, ArrayInfo&, Scratch&) noexcept = nullptr;  // the same
};

struct Codec {
  std::string_view name;                                     // in JSON, in `inspect`, in packs
  std::string_view title;                                    // in messages
  std::string_view article = "a";                            // of the title
  std::array<std::string_view, 4> extensions;                // lower case, without the dot; new files get the first
  std::array<Magic, 2> magic;                                // any of them; none: known by name only
  std::variant<ImageCodec, AudioCodec, ArrayCodec> decoder;  // in the order of SampleKind

  SampleKind kind() const noexcept { return static_cast<SampleKind>(decoder.index()); }
};

const Codec* codec_of(Media media) noexcept;  // null if unknown

// The decoder of a media that is known and of this kind, else null.
template <typename Decoder>
const Decoder* decoder_of(Media media) noexcept {
  const Codec* const codec = codec_of(media);
  return codec != nullptr ? std::get_if<Decoder>(&codec->decoder) : nullptr;
}

}  // namespace stoker::codec
