// RIFF and RF64 WAVE. Values are those of soundfile.read(dtype="float32"), that is of libsndfile.
#include "stoker/codec/wav.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "stoker/codec/byte_order.h"
#include "stoker/codec/table.h"
#include "stoker/codec/wav_samples.h"

namespace stoker::codec {
namespace {

constexpr std::uint16_t kPcm = 1, kFloat = 3, kAlaw = 6, kMulaw = 7, kExtensible = 0xFFFE;
constexpr std::uint32_t kMostChannels = 1024;  // as libsndfile
constexpr std::uint32_t kOpen = 0xFFFFFFFF;    // a length that stands elsewhere (ds64) or was never known

Result read_format(Bytes chunk, std::uint64_t offset, AudioInfo& info) noexcept {
  if (chunk.size() < 16) return failed(Code::corrupt, "the fmt chunk is shorter than 16 bytes", offset);
  std::uint16_t format = little16(chunk.data());
  info.channels = little16(chunk.data() + 2);
  info.rate_hz = little32(chunk.data() + 4);
  const std::uint32_t block_bytes = little16(chunk.data() + 12);
  const std::uint32_t bits = little16(chunk.data() + 14);
  if (info.channels == 0) return failed(Code::corrupt, "no channels", offset + 2);
  if (info.channels > kMostChannels) return failed(Code::unsupported, "more than 1024 channels", offset + 2);
  if (info.rate_hz == 0) return failed(Code::corrupt, "a sample rate of 0 Hz", offset + 4);
  if (format == kExtensible) {
    if (chunk.size() < 40) return failed(Code::corrupt, "the extensible fmt chunk is shorter than 40 bytes", offset);
    static constexpr unsigned char kTail[14] = {0, 0, 0, 0, 0x10, 0, 0x80, 0x00, 0x00, 0xAA, 0x00, 0x38, 0x9B, 0x71};
    if (std::memcmp(chunk.data() + 26, kTail, sizeof kTail) != 0) {
      return failed(Code::unsupported, "an extensible format that is neither PCM nor float", offset + 24);
    }
    format = little16(chunk.data() + 24);
  }
  const std::uint32_t width = (bits + 7) / 8;
  if (format == kPcm && width >= 1 && width <= 4) {
    constexpr SampleFormat kFormats[] = {SampleFormat::u8, SampleFormat::s16, SampleFormat::s24, SampleFormat::s32};
    info.format = kFormats[width - 1];
  } else if (format == kFloat && (bits == 32 || bits == 64)) {
    info.format = bits == 32 ? SampleFormat::f32 : SampleFormat::f64;
  } else if (format == kPcm || format == kFloat) {
    return failed(Code::unsupported, "a sample width that is not 8, 16, 24 or 32 bits (PCM), 32 or 64 (float)",
                  offset + 14);
  } else if (format == kAlaw || format == kMulaw) {
    return failed(Code::unsupported, "A-law or mu-law samples", offset);
  } else {
    return failed(Code::unsupported, "compressed samples", offset);
  }
  // Writers leave nonsense in this field, and libsndfile overlooks it; one value does mean something.
  if (width == 3 && block_bytes == info.channels * 4) {
    return failed(Code::unsupported, "24-bit samples in 32-bit words", offset + 12);
  }
  return {};
}

}  // namespace

Result probe_wav(Bytes bytes, AudioInfo& info) noexcept {
  info = {};
  if (bytes.size() < 12) return failed(Code::truncated, "shorter than a RIFF header", bytes.size());
  const std::uint32_t kind = little32(bytes.data());
  if (kind == tag("RIFX")) return failed(Code::unsupported, "a big-endian file (RIFX)", 0);
  if ((kind != tag("RIFF") && kind != tag("RF64")) || little32(bytes.data() + 8) != tag("WAVE")) {
    return failed(Code::corrupt, "no RIFF WAVE header", 0);
  }
  const std::uint32_t riff_bytes = little32(bytes.data() + 4);
  std::uint64_t long_data_bytes = kNoOffset;  // from ds64
  bool has_format = false;
  std::uint64_t at = 12;
  while (bytes.size() - at >= 8) {
    const std::uint32_t chunk = little32(bytes.data() + at);
    const std::uint32_t length = little32(bytes.data() + at + 4);
    at += 8;
    const std::uint64_t rest = bytes.size() - at;
    if (chunk == tag("data")) {
      if (!has_format) return failed(Code::corrupt, "the data chunk comes before the fmt chunk", at - 8);
      std::uint64_t data_bytes = length;
      if (kind == tag("RF64") && length == kOpen && long_data_bytes != kNoOffset) data_bytes = long_data_bytes;
      const bool left_open = length == 0 && (riff_bytes == 0 || riff_bytes == 8 || riff_bytes == kOpen);
      if (left_open || data_bytes > rest) data_bytes = rest;
      info.data_offset = at;
      info.frames = data_bytes / (bytes_of(info.format) * info.channels);
      return {};
    }
    if (length > rest) return failed(Code::truncated, "a chunk goes beyond the end", at - 8);
    if (chunk == tag("fmt ")) {
      if (const Result result = read_format(bytes.subspan(at, length), at, info); !result.ok()) return result;
      has_format = true;
    } else if (chunk == tag("ds64") && length >= 16) {
      long_data_bytes = little64(bytes.data() + at + 8);
    }
    at += length;
    at += length & 1 && at < bytes.size() ? 1 : 0;
  }
  return failed(Code::truncated, has_format ? "no data chunk" : "no fmt chunk", bytes.size());
}

Result decode_wav(Bytes bytes, const AudioInfo& info, std::uint64_t first, std::uint64_t frames, float* into,
                  std::size_t channel_stride, Scratch&) noexcept {
  if (first > info.frames || frames > info.frames - first) {
    return failed(Code::mismatch, "more frames asked for than there are");
  }
  if (frames == 0) return {};
  const std::size_t sample_bytes = bytes_of(info.format);
  const std::size_t frame_bytes = sample_bytes * info.channels;
  if (frame_bytes == 0 || info.data_offset > bytes.size() ||
      (bytes.size() - info.data_offset) / frame_bytes < first + frames) {
    return failed(Code::truncated, "the samples end early", bytes.size());
  }
  const std::byte* from = bytes.data() + info.data_offset + first * frame_bytes;
  if (info.channels == 1) {
    widen(info.format, from, frames, frame_bytes, into);
    return {};
  }
  // In pieces that stay in the first-level cache while each channel passes over them.
  const std::uint64_t piece = std::max<std::uint64_t>(64, 16384 / frame_bytes);
  for (std::uint64_t done = 0; done < frames; done += piece) {
    const std::size_t count = std::min(piece, frames - done);
    for (std::uint32_t c = 0; c < info.channels; ++c) {
      widen(info.format, from + done * frame_bytes + c * sample_bytes, count, frame_bytes,
            into + c * channel_stride + done);
    }
  }
  return {};
}

extern constinit const Codec kWav{.name = "wav",
                                  .title = "WAV",
                                  .extensions = {"wav", "wave"},
                                  .magic = {{{0, "RIFF????WAVE"}, {0, "RF64????WAVE"}}},
                                  .decoder = AudioCodec{probe_wav, decode_wav}};

}  // namespace stoker::codec
