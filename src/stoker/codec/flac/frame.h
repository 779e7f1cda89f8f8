// One frame of a FLAC file, decoded to integers. Pure; safe from any thread. Private to this folder.
#pragma once

#include <cstddef>
#include <cstdint>

#include "stoker/codec/flac/stream.h"

namespace stoker::codec::flac {

// Decodes the frame at byte `place`. Channel c begins at into + c * stream.most_block; header.samples values are
// written to each. `next` becomes the byte behind the frame. The sum of the frame is checked.
Result decode_frame(Bytes bytes, std::uint64_t place, const Stream& stream, std::int32_t* into, FrameHeader& header,
                    std::uint64_t& next) noexcept;

}  // namespace stoker::codec::flac
