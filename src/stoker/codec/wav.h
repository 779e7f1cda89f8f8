// WAV files. Private to this folder and its tests; safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "stoker/codec/codec.h"

namespace stoker::codec {

// A data chunk that claims more than there is, or whose length a streaming writer left open (0 with a RIFF size of 0, 8
// or 2^32-1; 2^32-1), is what is there. An incomplete last frame is dropped.
Result probe_wav(Bytes bytes, AudioInfo& info) noexcept;

// As decode_audio.
Result decode_wav(Bytes bytes, const AudioInfo& info, std::uint64_t first, std::uint64_t frames, float* into,
                  std::size_t channel_stride, Scratch& scratch) noexcept;

}  // namespace stoker::codec
