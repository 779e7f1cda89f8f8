// FLAC (RFC 9639), 4 to 24 bits, up to 8 channels. Values are those of soundfile.read(dtype="float32"). Own decoder:
// it allocates nothing and reads a range without the frames before it.
#include "stoker/codec/flac.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "stoker/codec/flac/frame.h"
#include "stoker/codec/flac/stream.h"
#include "stoker/codec/md5.h"
#include "stoker/codec/table.h"

namespace stoker::codec {
namespace {

std::uint64_t block_bytes(const flac::Stream& stream) noexcept {
  return std::uint64_t{stream.most_block} * stream.channels * sizeof(std::int32_t);
}

std::int32_t* take_block(const flac::Stream& stream, Scratch& scratch) noexcept {
  return reinterpret_cast<std::int32_t*>(scratch.take(block_bytes(stream)).data());
}

constexpr Result kNoBlock = failed(Code::no_memory, "no room for a frame of samples");

void to_float(const std::int32_t* from, std::size_t count, float scale, float* into) noexcept {
  for (std::size_t i = 0; i < count; ++i) into[i] = static_cast<float>(from[i]) * scale;
}

// How many bytes of ID3v2 tags there are before the stream. Some tools write them, and libFLAC passes over them.
Result measure_tags(Bytes bytes, std::uint64_t& tags) noexcept {
  constexpr std::size_t kHeader = 10, kFooter = 10;
  constexpr unsigned kHasFooter = 0x10;
  tags = 0;
  while (bytes.size() - tags >= 3 && std::memcmp(&bytes[tags], "ID3", 3) == 0) {
    const Bytes rest = bytes.subspan(tags);
    if (rest.size() < kHeader) return failed(Code::truncated, "ends inside an ID3 tag", bytes.size());
    std::uint64_t size = 0;
    for (std::size_t i = 6; i < kHeader; ++i) {
      const auto part = std::to_integer<unsigned>(rest[i]);
      if (part > 0x7F) return failed(Code::corrupt, "an ID3 tag with an impossible size", tags + i);
      size = size << 7 | part;
    }
    size += kHeader + ((std::to_integer<unsigned>(rest[5]) & kHasFooter) != 0 ? kFooter : 0);
    if (size > rest.size()) return failed(Code::truncated, "an ID3 tag goes beyond the end", tags);
    tags += size;
  }
  if (tags == 0 || (bytes.size() - tags >= 4 && std::memcmp(&bytes[tags], "fLaC", 4) == 0)) return {};
  return failed(Code::unsupported, "an ID3 tag, and no FLAC stream behind it: MP3 files are not read", tags);
}

// Gives `use` the stream behind the tags. Offsets of what it returns count from the start of the file.
template <typename Use>
Result behind_tags(Bytes bytes, const Use& use) noexcept {
  std::uint64_t tags = 0;
  if (const Result result = measure_tags(bytes, tags); !result.ok()) return result;
  Result result = use(bytes.subspan(tags));
  if (!result.ok() && result.offset != kNoOffset) result.offset += tags;
  return result;
}

struct Range {
  std::uint64_t first, count;
  float* into;
  std::size_t channel_stride;
};

// Decodes from the frame at byte `place`, whose first sample is number `sample`. `is_sure` says that the place is the
// start of the file's frames; otherwise each header must have the number that it should.
Result decode_from(Bytes bytes, const flac::Stream& stream, std::uint64_t place, std::uint64_t sample, bool is_sure,
                   const Range& range, std::int32_t* block) noexcept {
  const float scale = 1.0F / static_cast<float>(1u << (stream.bits - 1));
  const std::uint64_t end = range.first + range.count;
  while (sample < end) {
    if (place >= bytes.size()) return failed(Code::truncated, "the samples end early", bytes.size());
    flac::FrameHeader header;
    const Result result = flac::decode_frame(bytes, place, stream, block, header, place);
    if (!result.ok()) return result;
    if (!is_sure && header.first != sample) return failed(Code::corrupt, "frames are out of order", place);
    const std::uint64_t from = std::max(sample, range.first), to = std::min(sample + header.samples, end);
    for (std::uint32_t c = 0; c < stream.channels && from < to; ++c) {
      to_float(block + std::size_t{c} * stream.most_block + (from - sample), to - from, scale,
               range.into + c * range.channel_stride + (from - range.first));
    }
    sample += header.samples;
  }
  return {};
}

Result probe_stream(Bytes bytes, AudioInfo& info) noexcept {
  info = {};
  flac::Stream stream;
  if (const Result result = flac::read_stream(bytes, stream); !result.ok()) return result;
  if (stream.samples == 0 && !flac::count_samples(bytes, stream, stream.samples)) {
    return failed(Code::unsupported, "the header has no sample count and no last frame was found: encode it again", 21);
  }
  info.channels = stream.channels, info.rate_hz = stream.rate_hz, info.frames = stream.samples;
  info.format = stream.bits <= 16 ? SampleFormat::s16 : SampleFormat::s24;
  info.working_bytes = Scratch::rounded(block_bytes(stream));
  return {};
}

Result decode_stream(Bytes bytes, const AudioInfo& info, std::uint64_t first, std::uint64_t frames, float* into,
                     std::size_t channel_stride, Scratch& scratch) noexcept {
  flac::Stream stream;
  if (const Result result = flac::read_stream(bytes, stream); !result.ok()) return result;
  if (first > info.frames || frames > info.frames - first || stream.channels != info.channels) {
    return failed(Code::mismatch, "more frames asked for than there are");
  }
  if (frames == 0) return {};
  const Scratch::Mark mark = scratch.mark();
  std::int32_t* const block = take_block(stream, scratch);
  if (block == nullptr) return kNoBlock;
  stream.samples = info.frames;
  const Range range{first, frames, into, channel_stride};
  std::uint64_t sample = 0;
  const std::uint64_t place = flac::find_frame(bytes, stream, first, sample);
  Result result = decode_from(bytes, stream, place, sample, sample == 0, range, block);
  if (!result.ok() && sample != 0) result = decode_from(bytes, stream, stream.first_frame, 0, true, range, block);
  scratch.rewind(mark);
  return result;
}

Result verify_stream(Bytes bytes, const AudioInfo& info, Scratch& scratch) noexcept {
  flac::Stream stream;
  if (const Result result = flac::read_stream(bytes, stream); !result.ok()) return result;
  if (stream.md5 == std::array<std::byte, 16>{} || info.frames == 0) return {};
  const Scratch::Mark mark = scratch.mark();
  std::int32_t* const block = take_block(stream, scratch);
  if (block == nullptr) return kNoBlock;
  Md5 sum;
  const std::uint32_t width = (stream.bits + 7) / 8;
  std::uint64_t sample = 0, place = stream.first_frame;
  Result result;
  while (result.ok() && sample < info.frames) {
    flac::FrameHeader header;
    result = flac::decode_frame(bytes, place, stream, block, header, place);
    if (!result.ok()) break;
    std::array<std::byte, 3072> part;
    std::size_t used = 0;
    for (std::uint32_t i = 0; i < header.samples; ++i) {
      for (std::uint32_t c = 0; c < stream.channels; ++c) {
        if (used + width > part.size()) sum.add(std::span(part).first(used)), used = 0;
        std::memcpy(&part[used], &block[std::size_t{c} * stream.most_block + i], width);
        used += width;
      }
    }
    sum.add(std::span(part).first(used));
    sample += header.samples;
  }
  scratch.rewind(mark);
  if (result.ok() && sum.finish() != stream.md5) {
    result = failed(Code::corrupt, "the MD5 of the samples differs from that in the header", 26);
  }
  return result;
}

}  // namespace

Result probe_flac(Bytes bytes, AudioInfo& info) noexcept {
  return behind_tags(bytes, [&](Bytes stream) { return probe_stream(stream, info); });
}

Result decode_flac(Bytes bytes, const AudioInfo& info, std::uint64_t first, std::uint64_t frames, float* into,
                   std::size_t channel_stride, Scratch& scratch) noexcept {
  return behind_tags(
      bytes, [&](Bytes stream) { return decode_stream(stream, info, first, frames, into, channel_stride, scratch); });
}

Result verify_flac(Bytes bytes, const AudioInfo& info, Scratch& scratch) noexcept {
  return behind_tags(bytes, [&](Bytes stream) { return verify_stream(stream, info, scratch); });
}

extern constinit const Codec kFlac{.name = "flac",
                                   .title = "FLAC",
                                   .extensions = {"flac"},
                                   .magic = {{{0, "fLaC"}, {0, "ID3"}}},
                                   .decoder = AudioCodec{probe_flac, decode_flac, verify_flac}};

}  // namespace stoker::codec
