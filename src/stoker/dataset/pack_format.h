// What a pack is made of: pack.json, index.npy, names.txt. Pure functions on text and bytes;
// docs/reference/pack-format.md describes the same for people. Safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "stoker/base/dtype.h"
#include "stoker/dataset/dataset.h"

namespace stoker::dataset {

inline constexpr std::uint32_t kPackVersion = 1;        // of the layout; a pack of a later one is refused
inline constexpr std::uint64_t kPackDataOffset = 4096;  // of the first row in a data-*.npy
inline constexpr std::string_view kPackSchema = "stoker-pack";
inline constexpr std::string_view kPackJson = "pack.json";
inline constexpr std::string_view kPackIndex = "index.npy";
inline constexpr std::string_view kPackNames = "names.txt";
inline constexpr std::string_view kPackColumns = "columns.csv";  // only where the source has further columns
inline constexpr std::string_view kPackSeek = "seek.bin";        // only where JPEG files were looked through

// One row of index.npy, as it lies in the file (little endian). numpy sees the same names.
struct PackRow {
  std::int64_t id = 0;
  std::uint64_t label = 0;              // int64, or float64 where labels are real
  std::uint64_t offset = 0, bytes = 0;  // of the payload in its shard
  std::uint64_t xxh3 = 0;               // XXH3-64 of the payload
  std::uint32_t shard = 0;
  std::uint32_t height = 0, width = 0, channels = 0;  // images; channels of audio too; 0: not known
  std::uint64_t frames = 0;                           // audio: true length, before padding
  std::uint64_t source_bytes = 0;                     // of the source file, and when it was changed:
  std::int64_t source_mtime_ns = 0;                   // a repack keeps the sample while both are the same
};
static_assert(sizeof(PackRow) == 80 && std::is_trivially_copyable_v<PackRow>);

enum class PackKind : std::uint8_t { raw, encoded };
std::string_view name(PackKind kind) noexcept;
PackKind parse_pack_kind(std::string_view text);  // throws Error(usage), offering the nearest word

struct PackShard {
  std::string name;  // data-00000.npy, data-00000.tar
  std::uint64_t bytes = 0, count = 0;
};
struct PackFile {  // every other file of the pack
  std::string name;
  std::uint64_t bytes = 0, xxh3 = 0;
};
struct PackSkipped {
  std::string name, cause;
};

// pack.json.
struct PackManifest {
  std::string stoker_version;
  PackKind kind = PackKind::raw;
  std::uint64_t count = 0;
  std::uint64_t fingerprint = 0;
  // raw
  DType dtype = DType::u8;
  std::vector<std::uint64_t> shape;  // of one sample
  std::string content;               // "image", "audio", "array"; encoded: the media found, "jpeg, png"
  std::uint32_t rate_hz = 0;         // audio

  LabelKind label_kind = LabelKind::none;
  std::vector<std::string> classes, columns;
  std::string source;    // where the samples came from; empty: a program
  std::string settings;  // what was asked for, as a JSON object
  std::vector<PackShard> shards;
  std::vector<PackFile> files;
  std::vector<PackSkipped> skipped;  // bad samples that were left out

  const PackFile* file(std::string_view name) const noexcept;  // null: the pack has none
};

// Throws Error: `corrupt` naming what is wrong, `unsupported` for a later version. `address` is for messages.
PackManifest parse_manifest(std::string_view json, std::string_view address);
std::string to_json(const PackManifest& manifest);

std::string shard_name(PackKind kind, std::uint64_t number);
std::uint64_t shard_number(std::string_view name) noexcept;  // data-00012.tar is 12

// The head of index.npy for `count` rows; the rows follow it.
std::string index_header(std::uint64_t count, LabelKind label_kind);
// The rows in the bytes of an index.npy. Throws Error(corrupt).
std::span<const std::byte> index_rows(std::span<const std::byte> file, std::uint64_t count, LabelKind label_kind,
                                      std::string_view address);
// The head of a .npy, padded so that data begins at kPackDataOffset. Throws Error(usage) for more than that holds.
std::string npy_header(DType dtype, std::span<const std::uint64_t> shape);

// A line of names.txt: backslash, line feed and carriage return are written \\, \n and \r.
void append_name(std::string& out, std::string_view name);
std::string read_name(std::string_view line);

Label label_of(const PackRow& row, LabelKind kind) noexcept;
std::uint64_t label_bits(const Label& label, LabelKind kind) noexcept;

}  // namespace stoker::dataset
