// FLAC files. Private to this folder and its tests; safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "stoker/codec/codec.h"

namespace stoker::codec {

// A file whose STREAMINFO has no count of samples, as streaming writers leave it, is as long as its last frame says.
Result probe_flac(Bytes bytes, AudioInfo& info) noexcept;

// As decode_audio. Only the frames that hold the wanted range are decoded. The CRC of each of them is checked.
Result decode_flac(Bytes bytes, const AudioInfo& info, std::uint64_t first, std::uint64_t frames, float* into,
                   std::size_t channel_stride, Scratch& scratch) noexcept;

// Compares the MD5 of all samples with that of STREAMINFO, where there is one.
Result verify_flac(Bytes bytes, const AudioInfo& info, Scratch& scratch) noexcept;

}  // namespace stoker::codec
