// What the metadata of a zarr array says: .zarray of version 2, zarr.json of version 3, and the multiscales of
// OME-Zarr. Pure functions on text; safe from any thread. All throw Error, naming `subject` and what is not read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/dtype.h"
#include "stoker/base/json.h"
#include "stoker/codec/chunk_codec.h"

namespace stoker::dataset {

struct ZarrArray {
  int version = 2;
  DType dtype = DType::u8;
  std::vector<std::uint64_t> shape;  // 1 to codec::kMaxAxes axes, none of them 0
  std::vector<std::uint64_t> chunk;  // of what is decoded at once; as many axes
  std::vector<std::uint64_t> shard;  // of an object that holds many chunks; empty: each chunk is its own object
  std::vector<std::string> axes;     // their names; empty: they have none
  codec::ChunkForm form;
  std::array<std::byte, 8> fill{};  // one element of an absent chunk, in the machine's byte order
  std::string packing;              // for people: "blosc-zstd", "uncompressed"

  // Keys of objects: prefix, then the numbers of the chunk along each axis with the separator between them.
  std::string prefix;  // "c/", or empty
  char separator = '.';

  // Of shards: the table of chunks, offset and bytes of each as 64-bit numbers.
  bool index_at_start = false;
  bool index_has_sum = false;
  bool index_is_swapped = false;

  std::vector<std::uint64_t> grid() const;  // how many objects along each axis
  std::uint64_t chunks_per_shard() const noexcept;
};

inline constexpr std::uint64_t kMaxMetadataBytes = 32 << 20;

// `json` is the whole document. Version 3: its node_type is "array".
ZarrArray parse_zarr_array(const Json& json, int version, std::string_view subject);

// One resolution of an OME-Zarr image.
struct OmeLevel {
  std::string path;                // of the array, below the group
  std::vector<std::string> axes;   // "t", "c", "z", "y", "x"
  std::vector<double> spacing_mm;  // of each axis; 0: not known, or not a length
};
// The first image that the attributes of a group describe, finest level first; empty: they describe none.
std::vector<OmeLevel> parse_multiscales(const Json& attributes, std::string_view subject);

}  // namespace stoker::dataset
