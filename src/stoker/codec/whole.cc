#include "stoker/codec/whole.h"

namespace stoker::codec {
namespace {

ImageOptions as_stored(const ImageInfo& info) noexcept {
  ImageOptions options;
  options.color = Color::keep;
  options.deep = info.bits == 16;
  return options;
}

Pixels pixels_of(const ImageInfo& info) noexcept {
  const ImageOptions options = as_stored(info);
  Pixels pixels;
  pixels.width = info.width, pixels.height = info.height;
  pixels.channels = output_channels(info, options);
  pixels.dtype = options.deep ? DType::u16 : DType::u8;
  pixels.stride_bytes = pixels.row_bytes();
  return pixels;
}

}  // namespace

Result probe(Bytes bytes, Head& head, Scratch& scratch) noexcept {
  head = {};
  if (bytes.empty()) return failed(Code::truncated, "the file is empty");
  head.media = sniff(bytes);
  const std::optional<SampleKind> kind = kind_of(head.media);
  if (!kind) return failed(Code::unsupported, refusal());
  switch (*kind) {
    case SampleKind::image:
      return probe_image(head.media, bytes, head.image);
    case SampleKind::audio:
      return probe_audio(head.media, bytes, head.audio);
    case SampleKind::array:
      return probe_array(head.media, bytes, head.array, scratch);
    case SampleKind::volume:
      break;  // no codec has it
  }
  return {};
}

std::uint64_t decoded_bytes(const Head& head) noexcept {
  const std::optional<SampleKind> kind = kind_of(head.media);
  if (!kind) return 0;
  switch (*kind) {
    case SampleKind::image:
      return std::uint64_t{pixels_of(head.image).stride_bytes} * head.image.height;
    case SampleKind::audio:
      return head.audio.frames * head.audio.channels * sizeof(float);
    case SampleKind::array:
      return head.array.data_bytes;
    case SampleKind::volume:
      break;
  }
  return 0;
}

Result decode(Bytes bytes, const Head& head, bool strict, std::byte* into, Scratch& scratch) noexcept {
  const std::optional<SampleKind> kind = kind_of(head.media);
  if (!kind) return failed(Code::unsupported, refusal());
  switch (*kind) {
    case SampleKind::image: {
      ImageOptions options = as_stored(head.image);
      options.strict = strict;
      Pixels pixels = pixels_of(head.image);
      pixels.data = into;
      return decode_image(head.media, bytes, options, {0, 0, pixels.width, pixels.height}, pixels, scratch);
    }
    case SampleKind::audio: {
      const Result result = decode_audio(head.media, bytes, head.audio, 0, head.audio.frames,
                                         reinterpret_cast<float*>(into), head.audio.frames, scratch);
      return result.ok() && strict ? verify_audio(head.media, bytes, head.audio, scratch) : result;
    }
    case SampleKind::array:
      return decode_array(head.media, bytes, head.array, into, scratch);
    case SampleKind::volume:
      break;
  }
  return {};
}

}  // namespace stoker::codec
