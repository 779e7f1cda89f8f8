// One chunk of a zarr array: from the bytes in its file, or in its shard, to elements. As codec.h says: no I/O, no
// exceptions, no memory but the caller's, safe from any thread. Two exceptions: one zstd decompressor per thread, and
// the temporary blocks of libblosc, at most three times the chunk and gone when the call returns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "stoker/codec/codec.h"

namespace stoker::codec {

enum class Packing : std::uint8_t { none, gzip, zlib, zstd, blosc };

inline constexpr std::uint64_t kMaxChunkBytes = std::uint64_t{1} << 30;  // decoded; larger chunks are refused
inline constexpr std::size_t kMaxAxes = 8;

// How the chunks of one array are encoded. The reader of the metadata has checked that it is consistent.
struct ChunkForm {
  std::uint64_t bytes = 0;  // of a decoded chunk; at most kMaxChunkBytes
  std::uint8_t value_bytes = 1;
  bool swap_bytes = false;
  Packing packing = Packing::none;
  std::uint8_t outer_sums = 0;  // CRC32C sums behind the packed bytes
  std::uint8_t inner_sums = 0;  // CRC32C sums behind the elements, packed with them
  // Of axes that are stored in another order: the extents of the stored axes, slowest first, and how far a step along
  // each of them goes in the decoded chunk. Rank 0: C order.
  std::uint8_t rank = 0;
  std::array<std::uint64_t, kMaxAxes> stored{};
  std::array<std::uint64_t, kMaxAxes> step_bytes{};
};

// The most that decode_packed takes from the Scratch.
std::uint64_t working_bytes(const ChunkForm& form) noexcept;
// Writes form.bytes bytes to `into`.
Result decode_packed(const ChunkForm& form, Bytes encoded, std::byte* into, Scratch& scratch) noexcept;

// Removes a CRC32C sum from the end of `bytes`, after it was compared.
Result check_sum(Bytes& bytes) noexcept;

// The libraries that unpack chunks, with their versions: "blosc 1.21.3, zstd 1.5.4".
std::string packing_versions();

}  // namespace stoker::codec
