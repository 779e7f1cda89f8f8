// WebP by libwebp, lossy and lossless. Pixels are Pillow's: RGB, or RGBA where the file has transparency; of an
// animation the first frame on its canvas. libwebp takes its working memory from malloc. So that it is admitted as all
// other memory is, as much is taken from the Scratch before libwebp starts, and left untouched.
#include <algorithm>
#include <cstring>
#include <memory>

#include <webp/decode.h>
#include <webp/demux.h>

#include "stoker/codec/byte_order.h"
#include "stoker/codec/image.h"
#include "stoker/codec/table.h"

namespace stoker::codec {
namespace {

constexpr std::uint64_t kWebpFixed = 256 << 10;  // tables and Huffman codes of a decoder, and rounding

const std::uint8_t* as_uint8(Bytes bytes) noexcept {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

Result failure_of(VP8StatusCode status, Bytes bytes) noexcept {
  switch (status) {
    case VP8_STATUS_OK:
      return {};
    case VP8_STATUS_OUT_OF_MEMORY:
      return failed(Code::no_memory, "no room to decode the image");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return failed(Code::unsupported, "a WebP feature that libwebp does not decode");
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return failed(Code::truncated, "the image's data ends early", bytes.size());
    default:
      return failed(Code::corrupt, "damaged WebP data");
  }
}

struct WebpHeader {
  ImageInfo info;
  bool is_animated = false, is_lossless = false;

  std::uint64_t pixels() const noexcept { return std::uint64_t{info.width} * info.height; }
  // At most what libwebp allocates: two canvases of an animation; the pixels of a lossless image or alpha plane; rows.
  std::uint64_t inside_bytes() const noexcept {
    const std::uint64_t planes = is_animated ? 3 * 4 + 5 : is_lossless ? 6 : info.channels == 4 ? 4 : 0;
    return planes * pixels() + std::uint64_t{info.width} * 160 + kWebpFixed;
  }
};

Result read_webp_header(Bytes bytes, WebpHeader& header) noexcept {
  if (bytes.size() < 12) return failed(Code::truncated, "shorter than a WebP header", bytes.size());
  if (std::memcmp(bytes.data(), "RIFF", 4) != 0 || std::memcmp(bytes.data() + 8, "WEBP", 4) != 0) {
    return failed(Code::corrupt, "no RIFF WEBP header", 0);
  }
  if (little32(bytes.data() + 4) > bytes.size() - 8) {  // libwebp would give what is there, Pillow refuses
    return failed(Code::truncated, "the file is shorter than its header says", bytes.size());
  }
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(as_uint8(bytes), bytes.size(), &features);
  if (status != VP8_STATUS_OK) return failure_of(status, bytes);
  header.info.width = static_cast<std::uint32_t>(features.width);
  header.info.height = static_cast<std::uint32_t>(features.height);
  if (header.info.width == 0 || header.info.height == 0) return failed(Code::corrupt, "an image without pixels");
  header.info.channels = features.has_alpha != 0 ? 4 : 3;
  header.is_animated = features.has_animation != 0;
  header.is_lossless = features.format == 2;
  if (header.pixels() > kMaxPixels) return failed(Code::too_large, "more than 2^30 pixels");
  return {};
}

Result decode_still(Bytes bytes, const WebpHeader& header, std::uint8_t* into, std::size_t row_bytes) noexcept {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) return failed(Code::unsupported, "libwebp has another version");
  config.output.colorspace = header.info.channels == 4 ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {into, static_cast<int>(row_bytes), row_bytes * header.info.height};
  return failure_of(WebPDecode(as_uint8(bytes), bytes.size(), &config), bytes);
}

struct DeleteAnimation {
  void operator()(WebPAnimDecoder* decoder) const noexcept { WebPAnimDecoderDelete(decoder); }
};

Result decode_first_frame(Bytes bytes, const WebpHeader& header, std::uint8_t* into, std::size_t row_bytes) noexcept {
  const WebPData data{as_uint8(bytes), bytes.size()};
  const std::unique_ptr<WebPAnimDecoder, DeleteAnimation> decoder(WebPAnimDecoderNew(&data, nullptr));
  WebPAnimInfo info;
  std::uint8_t* canvas = nullptr;
  int time = 0;
  if (decoder == nullptr || WebPAnimDecoderGetInfo(decoder.get(), &info) == 0 ||
      WebPAnimDecoderGetNext(decoder.get(), &canvas, &time) == 0) {
    return failed(Code::corrupt, "the first frame of the animation cannot be decoded");
  }
  if (info.canvas_width != header.info.width || info.canvas_height != header.info.height) {
    return failed(Code::corrupt, "the canvas of the animation has two sizes");
  }
  const std::size_t channels = header.info.channels;
  for (std::uint64_t y = 0; y < header.info.height; ++y) {
    const std::uint8_t* const from = canvas + y * header.info.width * 4;
    for (std::uint64_t x = 0; x < header.info.width; ++x) {
      std::memcpy(into + y * row_bytes + x * channels, from + x * 4, channels);
    }
  }
  return {};
}

Result probe_webp(Bytes bytes, ImageInfo& info) noexcept {
  WebpHeader header;
  if (const Result result = read_webp_header(bytes, header); !result.ok()) return result;
  info = header.info;
  info.working_bytes =
      Scratch::rounded(header.pixels() * header.info.channels) + Scratch::rounded(header.inside_bytes());
  return {};
}

Result decode_webp(Bytes bytes, const ImageOptions& options, const Rect& region, const Pixels& into, Scratch& scratch,
                   SeekIndex*) noexcept {
  WebpHeader header;
  if (const Result result = read_webp_header(bytes, header); !result.ok()) return result;
  if (const Result result = check_request(header.info, options, region, region, into); !result.ok()) return result;
  const std::size_t row_bytes = std::size_t{header.info.width} * header.info.channels;
  const std::span<std::byte> pixels = scratch.take(row_bytes * header.info.height);
  const Scratch::Mark mark = scratch.mark();
  if (pixels.data() == nullptr || scratch.take(header.inside_bytes()).data() == nullptr) {
    return failed(Code::no_memory, "no room to decode the image");
  }
  auto* const rows = reinterpret_cast<std::uint8_t*>(pixels.data());
  const Result result = header.is_animated ? decode_first_frame(bytes, header, rows, row_bytes)
                                           : decode_still(bytes, header, rows, row_bytes);
  scratch.rewind(mark);
  if (!result.ok()) return result;
  for (std::uint32_t y = 0; y < region.height; ++y) {
    const std::byte* const row =
        pixels.data() + std::size_t{region.y + y} * row_bytes + std::size_t{region.x} * header.info.channels;
    store_row({row, region.width, header.info.channels, false}, options.color, into.dtype,
              into.data + std::size_t{y} * into.stride_bytes);
  }
  return {};
}

}  // namespace

extern constinit const Codec kWebp{.name = "webp",
                                   .title = "WebP",
                                   .extensions = {"webp"},
                                   .magic = {{{0, "RIFF????WEBP"}}},
                                   .decoder = ImageCodec{probe_webp, decode_webp, orientation_of_webp}};

}  // namespace stoker::codec
