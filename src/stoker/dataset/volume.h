// One opened volume of up to three dimensions: what it holds, and where its elements lie. A volume is either plain (its
// elements lie uncompressed in one source) or it consists of chunks, which are fetched and decoded one by one.
// Volumes are immutable once opened, and safe from any thread. What a call returns is borrowed from the volume.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "stoker/base/dtype.h"
#include "stoker/base/result.h"
#include "stoker/base/scratch.h"
#include "stoker/codec/chunk_codec.h"
#include "stoker/codec/codec.h"
#include "stoker/storage/location.h"
#include "stoker/storage/source.h"

namespace stoker::dataset {

using Extents = std::array<std::uint64_t, 3>;  // z, y, x

struct VolumeInfo {
  DType dtype = DType::u8;          // of one element as it is handed out, in the machine's byte order
  Extents extents{};                // none is 0
  std::uint32_t channels = 1;       // values of one element, which lie together; 1: no such axis
  Extents chunk{};                  // of a whole chunk; may exceed the extents. A plain volume is one chunk
  std::array<double, 3> spacing{};  // z, y, x, in millimetres where the file tells its unit; 0: not known
  double slope = 1, intercept = 0;  // the value that an element means is slope * element + intercept
  std::uint64_t stored_bytes = 0;   // on disk, as far as known without reading everything; 0: not known
  std::uint64_t working_bytes = 0;  // the most that decode_chunk takes from its Scratch
  std::string format;  // for people: "npy", "zarr v3, blosc-zstd", "NIfTI, gzip", "TIFF, 120 pages, deflate"
  std::string note;    // for people: what may be wrong with it, as a sentence; empty: nothing

  std::size_t element_bytes() const noexcept { return size_of(dtype) * channels; }  // all channels
  std::uint64_t chunk_bytes() const noexcept { return chunk[0] * chunk[1] * chunk[2] * element_bytes(); }
  Extents grid() const noexcept {  // how many chunks along each axis
    return {(extents[0] - 1) / chunk[0] + 1, (extents[1] - 1) / chunk[1] + 1, (extents[2] - 1) / chunk[2] + 1};
  }
  std::uint64_t chunks() const noexcept { return grid()[0] * grid()[1] * grid()[2]; }
};

// Where the elements of a plain volume lie. Along x they lie without gaps, so rows may be copied.
struct PlainLayout {
  const storage::Source* source = nullptr;
  std::uint64_t offset = 0;                     // of element (0, 0, 0)
  std::array<std::uint64_t, 3> stride_bytes{};  // z, y, x
  bool swap_bytes = false;                      // each value is in the other byte order
};

class Volume {
 public:
  virtual ~Volume() = default;

  virtual const VolumeInfo& info() const noexcept = 0;
  virtual std::string_view name() const noexcept = 0;  // for messages: its address

  // None: the volume has chunks. The three calls below are only for volumes with chunks.
  virtual std::optional<PlainLayout> plain() const noexcept { return std::nullopt; }

  // Chunks are numbered in C order over VolumeInfo::grid().
  // Where the encoded bytes of a chunk are. 0 bytes: the chunk is absent, and all of it has the fill value. `text` is
  // for the name of a file or object; storage::kLocationText is always enough. May look up a file.
  virtual storage::Location locate_chunk(std::uint64_t chunk, std::span<char> text) const noexcept;
  // Writes VolumeInfo::chunk_bytes() bytes to `into`: the whole chunk, in C order and the machine's byte order. What
  // lies beyond the extents may be anything, or stay as it was. `encoded` is what locate_chunk named, all of its bytes:
  // empty means an absent chunk, and a file that became empty is an error of the read.
  virtual Result decode_chunk(std::uint64_t chunk, codec::Bytes encoded, std::byte* into,
                              Scratch& scratch) const noexcept;
  // Whether planes along z of a chunk can be had by themselves. Pieces::stored: its elements begin at the start of its
  // location, as decode_chunk would write them.
  virtual codec::Pieces pieces() const noexcept { return codec::Pieces::none; }
  // Of Pieces::unpacked: which of the `encoded` bytes of a chunk decode_planes needs; see codec::find_piece.
  virtual Result find_planes(codec::Bytes head, std::uint64_t encoded, std::uint64_t first_byte, std::uint64_t bytes,
                             codec::PackedRun& run) const noexcept;
  // As decode_chunk, of planes only, which lie behind one another. `first_byte` is where the first
  // of them lies in the decoded chunk.
  virtual Result decode_planes(codec::Bytes encoded, std::uint64_t first_byte,
                               std::span<std::byte> into) const noexcept;
  virtual std::string chunk_name(std::uint64_t chunk) const;  // for messages: "chunk c/0/3/1 of `v.zarr`"

  // What locations refer to, for fetchers.
  virtual std::span<const storage::Source* const> sources() const noexcept { return {}; }
  virtual std::span<const storage::Backend* const> backends() const noexcept { return {}; }
  virtual std::uint64_t memory_bytes() const noexcept { return 0; }  // that it holds: indexes, inflated bytes
};

// The memory that inflated volumes may take, all of them together. Safe from any thread.
class InflatedRoom {
 public:
  explicit InflatedRoom(std::uint64_t bytes) noexcept : bytes_(bytes), left_(bytes) {}
  bool take(std::uint64_t bytes) noexcept {
    std::uint64_t left = left_.load(std::memory_order_relaxed);
    while (bytes <= left && !left_.compare_exchange_weak(left, left - bytes, std::memory_order_relaxed)) {
    }
    return bytes <= left;
  }
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  const std::uint64_t bytes_;
  std::atomic<std::uint64_t> left_;
};

struct VolumeOptions {
  // How local files are read. `automatic` maps a plain volume that memory can hold, and reads a larger one directly.
  storage::Storage storage = storage::Storage::automatic;
  std::uint32_t level = 0;  // of OME-Zarr multiscales; 0 is the finest
  std::string member;       // the name of an array in an archive, or its path below a zarr group; empty: the only one
  std::string cache_dir;    // where compressed files are inflated to, once; empty: into memory
  InflatedRoom* room = nullptr;  // for what is inflated into memory; null: a quarter of the machine's for each volume
};

// `address`: an array of numpy, a NIfTI or TIFF file, a zarr folder, or a folder of slices; most also in a store.
// Throws Error.
std::unique_ptr<Volume> open_volume(const std::string& address, const VolumeOptions& options = {});

// The formats that this build reads as volumes, with the versions of libraries; empty: built without STOKER_VOLUMES.
std::string volume_formats();

}  // namespace stoker::dataset
