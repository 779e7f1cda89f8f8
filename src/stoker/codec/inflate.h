// Whole-buffer inflate with libdeflate, one decompressor per thread. Private to this folder; safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "stoker/codec/codec.h"

namespace stoker::codec {

enum class Wrapper : std::uint8_t { zlib, none, gzip };
enum class Inflated : std::uint8_t { ok, bad_data, more_output, no_memory };

// No deflate stream expands more than this.
inline constexpr std::uint64_t kMaxExpansion = 1032;

// Writes `written` bytes from the start of `into`. With more_output the stream did not fit, and how much of `into` was
// written is not known.
Inflated inflate(Wrapper wrapper, Bytes stream, std::span<std::byte> into, std::size_t& written) noexcept;

std::uint32_t crc32(Bytes bytes, std::uint32_t before = 0) noexcept;

}  // namespace stoker::codec
