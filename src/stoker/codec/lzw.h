// The LZW of TIFF: codes from the highest bit on, and widths that grow one code early. Pure; safe from any thread.
#pragma once

#include <cstddef>
#include <span>

#include "stoker/codec/codec.h"

namespace stoker::codec {

// Writes `written` bytes from the start of `into`. Ends at the end code, or when `into` is full.
Result unpack_lzw(Bytes packed, std::span<std::byte> into, std::size_t& written) noexcept;

}  // namespace stoker::codec
