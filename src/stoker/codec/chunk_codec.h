// One chunk of a zarr array: from the bytes in its file, or in its shard, to elements. As codec.h says: no I/O, no
// exceptions, no memory but the caller's, safe from any thread. Two exceptions: one zstd decompressor per thread, and
// the temporary blocks of libblosc, at most three times the chunk and gone when the call returns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
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

// Whether a run of a chunk's bytes can be had without all of them: of the packed bytes alone, or of the file.
enum class Pieces : std::uint8_t {
  none,
  unpacked,  // decode_piece() unpacks less than the chunk
  stored,    // the elements lie in the file as they are handed out
};
Pieces pieces_of(const ChunkForm& form) noexcept;
// Of Pieces::unpacked: which packed bytes decode_piece() looks at beside the first kPieceHead, of a chunk of `packed`
// bytes that begins with `head`: kPieceHead bytes, or all. It takes a run of `count` decoded bytes from `first` on.
inline constexpr std::size_t kPieceHead = 4096;
struct PackedRun {
  std::uint64_t first = 0, bytes = 0;
};
Result find_piece(const ChunkForm& form, Bytes head, std::uint64_t packed, std::uint64_t first, std::uint64_t count,
                  PackedRun& run) noexcept;
// Writes the bytes [first, first + into.size()) of the decoded chunk.
Result decode_piece(const ChunkForm& form, Bytes encoded, std::uint64_t first, std::span<std::byte> into) noexcept;

// Removes a CRC32C sum from the end of `bytes`, after it was compared.
Result check_sum(Bytes& bytes) noexcept;

// The libraries that unpack chunks, with their versions: "blosc 1.21.3, zstd 1.5.4".
std::string packing_versions();

}  // namespace stoker::codec
