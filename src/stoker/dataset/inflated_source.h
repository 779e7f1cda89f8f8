// A compressed file, inflated once: into memory if it is small, else into a file of the cache folder, where the next
// run finds it. Memory beyond the result is a few MiB, whatever the size. From any thread; processes that want the same
// file wait for the one that inflates it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "stoker/dataset/volume.h"
#include "stoker/storage/source.h"

namespace stoker::dataset {

struct Compressed {
  enum class Form : std::uint8_t {
    gzip,     // one or several members
    deflate,  // bare, as in zip files; `crc32` is compared
  };
  const storage::Source* source = nullptr;  // the bytes lie in a range of it
  std::uint64_t offset = 0, bytes = 0;
  Form form = Form::gzip;
  std::uint32_t crc32 = 0;
  std::uint64_t inflated_bytes = 0;  // as headers say: room is taken for them before anything is inflated
};

struct InflatedFile {
  std::vector<std::byte> held;  // what `source` borrows, if it is in memory
  std::unique_ptr<storage::Source> source;
  std::uint64_t bytes = 0;  // from the start of `source`
};

// The file of the cache folder is found again by the length, the time or version, and the first and last bytes of the
// compressed one, which hold its CRC. Throws Error: damaged data names the byte.
InflatedFile inflate_once(const Compressed& compressed, const VolumeOptions& options);

// The first bytes, at most `bytes` of them, inflated. Throws Error.
std::vector<std::byte> inflate_start(const Compressed& compressed, std::size_t bytes);

// Compares the CRC of bytes that are stored as they are. Where there is a cache folder, a later run does not repeat it.
// Throws Error.
void check_stored(const Compressed& stored, const VolumeOptions& options);

inline constexpr std::uint64_t kHeldInflated = 8 << 20;  // up to this size it stays in memory

}  // namespace stoker::dataset
