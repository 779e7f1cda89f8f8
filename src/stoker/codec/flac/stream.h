// The structure of a FLAC file: the STREAMINFO block, the header of a frame, and the search for frames. Pure; safe from
// any thread. Private to this folder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "stoker/codec/codec.h"

namespace stoker::codec::flac {

struct Stream {
  std::uint32_t least_block = 0, most_block = 0;  // samples per channel in a frame; the last frame may have fewer
  std::uint32_t rate_hz = 0, channels = 0, bits = 0;
  std::uint64_t samples = 0;        // per channel; 0: not known
  std::array<std::byte, 16> md5{};  // of the samples; all zero: not known
  std::uint64_t first_frame = 0;    // byte in the file
};

Result read_stream(Bytes bytes, Stream& stream) noexcept;

enum class Mix : std::uint8_t { none, left_side, right_side, mid_side };

struct FrameHeader {
  std::uint32_t samples = 0;  // per channel
  std::uint64_t first = 0;    // number of its first sample, as the header says
  Mix mix = Mix::none;
  std::uint32_t bytes = 0;  // of the header itself
};

// The header at byte `at`. A frame whose rate, channels, depth or length differ from the stream's is refused.
Result read_frame_header(Bytes bytes, std::uint64_t at, const Stream& stream, FrameHeader& header) noexcept;

// A frame that begins before or at sample `first`, and the nearest such one that the search finds. Gives its byte, and
// sets `sample` to its first sample. Encoded samples may look like a frame header, so the search can be wrong: a caller
// whose decoding fails must start again at stream.first_frame.
std::uint64_t find_frame(Bytes bytes, const Stream& stream, std::uint64_t first, std::uint64_t& sample) noexcept;

// The number of samples, from the last frame of a file whose STREAMINFO does not say. False: it was not found.
bool count_samples(Bytes bytes, const Stream& stream, std::uint64_t& samples) noexcept;

// Fuzzers cannot guess sums, so their build takes any.
#if defined(FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION)
inline constexpr bool kChecksSums = false;
#else
inline constexpr bool kChecksSums = true;
#endif

std::uint8_t crc8(Bytes bytes) noexcept;
std::uint16_t crc16(Bytes bytes) noexcept;

}  // namespace stoker::codec::flac
