// A file of seek places, beside a data set in the cache or seek.bin of a pack: a header, a table with one row per JPEG
// file, and their places behind it (docs/reference/pack-format.md). Numbers are little endian. Rows and table are
// checksummed, and nothing in them is believed before it was checked. Immutable once open; safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "stoker/codec/codec.h"
#include "stoker/os/mapping.h"

namespace stoker::loader {

// The XXH3-64 of all bytes of a JPEG file: the checksum that a pack's index has of it too. Nothing less will do: places
// are used where the identity is the same, and places of another file decode to wrong pixels. 0 stands for no file; a
// file whose checksum it is has no places.
std::uint64_t identity_of(codec::Bytes file) noexcept;

struct SeekRow {
  std::uint64_t identity = 0;  // of the JPEG file
  std::uint64_t offset = 0;    // of its first place, from the start of this file
  std::uint32_t known = 0;     // places that are there
  std::uint32_t total = 0;     // places that the whole image has
  std::uint32_t step = 0;      // MCUs between places
  std::uint32_t check = 0;     // of the places
  std::uint64_t sample = 0;    // of the pack; 0 in the cache
};
static_assert(sizeof(SeekRow) == 40);

class SeekFile {
 public:
  SeekFile() = default;
  // A file that is not there is an empty one. `why` says what is wrong with one that cannot be used, and is empty
  // otherwise.
  static SeekFile open(const std::string& path, std::string& why);
  // Whether an earlier version of Stoker wrote the file. It is not damaged, but its places are not to be trusted.
  static bool is_outdated(const std::string& path) noexcept;

  std::span<const SeekRow> rows() const noexcept { return rows_; }  // by identity, ascending
  const SeekRow* find(std::uint64_t identity) const noexcept;       // null: it has none
  // The places of a row; empty if they are not what was written.
  std::span<const codec::Checkpoint> places(const SeekRow& row) const noexcept;
  void read_ahead() const noexcept;  // of the disk, in the background, unless that would be much

 private:
  os::Mapping mapping_;
  std::span<const SeekRow> rows_;
};

// One row and where its places are, to be written.
struct SeekRecord {
  SeekRow row;  // offset and check are filled in
  const codec::Checkpoint* places = nullptr;
};
// Whole or not at all; places lie in the order of the records. Throws Error.
void write_seek_file(const std::string& path, std::span<SeekRecord> records);

}  // namespace stoker::loader
