// Whole-buffer zstd, one decompressor per thread. Private to this folder; safe from any thread.
#pragma once

#include <cstddef>
#include <span>

#include "stoker/codec/codec.h"

namespace stoker::codec {

// Writes `written` bytes from the start of `into`. Bytes that do not fit are `corrupt`.
Result unpack_zstd(Bytes packed, std::span<std::byte> into, std::size_t& written) noexcept;

}  // namespace stoker::codec
