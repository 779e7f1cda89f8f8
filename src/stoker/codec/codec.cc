// Hands each request to the codec of the media. The functions are the same for every format.
#include "stoker/codec/codec.h"

#include "stoker/codec/exif.h"
#include "stoker/codec/image.h"
#include "stoker/codec/table.h"

namespace stoker::codec {

Result probe_image(Media media, Bytes bytes, ImageInfo& info) noexcept {
  info = {};
  const auto* const codec = decoder_of<ImageCodec>(media);
  return codec != nullptr ? codec->probe(bytes, info) : failed(Code::unsupported, refusal(SampleKind::image), 0);
}

Rect decoded_region(Media media, const ImageOptions& options, const Rect& region) noexcept {
  return is_scaled(media) ? scaled_region(options, region) : region;
}

Result decode_image(Media media, Bytes bytes, const ImageOptions& options, const Rect& region, const Pixels& into,
                    Scratch& scratch, SeekIndex* index) noexcept {
  const auto* const codec = decoder_of<ImageCodec>(media);
  if (codec == nullptr) return failed(Code::unsupported, refusal(SampleKind::image), 0);
  return codec->decode(bytes, options, region, into, scratch, index);
}

Orientation exif_orientation(Media media, Bytes bytes) noexcept {
  const auto* const codec = decoder_of<ImageCodec>(media);
  return codec != nullptr && codec->orientation != nullptr ? codec->orientation(bytes) : Orientation::upright;
}

Result probe_audio(Media media, Bytes bytes, AudioInfo& info) noexcept {
  info = {};
  const auto* const codec = decoder_of<AudioCodec>(media);
  return codec != nullptr ? codec->probe(bytes, info) : failed(Code::unsupported, refusal(SampleKind::audio), 0);
}

Result decode_audio(Media media, Bytes bytes, const AudioInfo& info, std::uint64_t first, std::uint64_t frames,
                    float* into, std::size_t channel_stride, Scratch& scratch) noexcept {
  const auto* const codec = decoder_of<AudioCodec>(media);
  if (codec == nullptr) return failed(Code::unsupported, refusal(SampleKind::audio), 0);
  return codec->decode(bytes, info, first, frames, into, channel_stride, scratch);
}

Result verify_audio(Media media, Bytes bytes, const AudioInfo& info, Scratch& scratch) noexcept {
  const auto* const codec = decoder_of<AudioCodec>(media);
  return codec != nullptr && codec->verify != nullptr ? codec->verify(bytes, info, scratch) : Result{};
}

Result probe_array(Media media, Bytes bytes, ArrayInfo& info, Scratch& scratch) noexcept {
  info = {};
  const auto* const codec = decoder_of<ArrayCodec>(media);
  if (codec == nullptr) return failed(Code::unsupported, refusal(SampleKind::array), 0);
  return codec->probe(bytes, info, scratch);
}

Result probe_member(Media media, Bytes bytes, std::string_view member, ArrayInfo& info, Scratch& scratch) noexcept {
  const auto* const codec = decoder_of<ArrayCodec>(media);
  if (codec == nullptr || codec->probe_member == nullptr) return probe_array(media, bytes, info, scratch);
  info = {};
  return codec->probe_member(bytes, member, info, scratch);
}

std::size_t list_arrays(Media media, Bytes bytes, std::span<std::string_view> names) noexcept {
  const auto* const codec = decoder_of<ArrayCodec>(media);
  return codec != nullptr && codec->list != nullptr ? codec->list(bytes, names) : 0;
}

Result decode_array(Media media, Bytes bytes, const ArrayInfo& info, std::byte* into, Scratch& scratch) noexcept {
  const auto* const codec = decoder_of<ArrayCodec>(media);
  if (codec == nullptr) return failed(Code::unsupported, refusal(SampleKind::array), 0);
  return codec->decode(bytes, info, into, scratch);
}

}  // namespace stoker::codec
