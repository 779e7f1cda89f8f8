// A pack of volumes: each volume as an .npy of bricks, [along z, along y, along x, z, y, x] (and channels), with the
// sums of the bricks beside it. docs/reference/pack-format.md describes it for people. Plain values; safe from any
// thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/dataset/volume.h"

namespace stoker::dataset {

// One array of bricks. Bricks at the end of an axis are filled up with zeros.
struct PackedBricks {
  std::string file;  // in the pack: image-00000.npy
  std::string sums;  // image-00000.sums.npy: uint64 [along z, along y, along x], XXH3-64 of each brick
  std::uint64_t sums_xxh3 = 0;
  VolumeInfo info;  // chunk is the brick

  std::uint64_t offset(std::uint64_t brick) const noexcept;  // in the file
  std::uint64_t file_bytes() const noexcept;
};

struct VolumePack {
  std::string stoker_version;
  std::string source;    // where the volumes came from
  std::string settings;  // brick and source volumes, as a JSON text: another one is another pack
  struct Entry {
    std::string name;  // of the source volume
    PackedBricks image;
    std::optional<PackedBricks> mask;
    double weight = 1;
  };
  std::vector<Entry> volumes;
};

inline constexpr std::string_view kVolumePackKind = "volume";

std::string to_json(const VolumePack& pack);
// The head of one array of bricks.
std::string brick_header(const VolumeInfo& info);

// The pack in a local folder. None: the folder is no pack, or one of another kind. Throws Error(corrupt) where the
// folder holds bricks and its pack.json is damaged or missing.
std::optional<VolumePack> find_volume_pack(const std::string& folder);

// One array of a pack, as a volume whose chunks are bricks. A brick whose sum differs is damaged. Throws Error.
std::unique_ptr<Volume> open_bricks(const std::string& folder, const PackedBricks& bricks,
                                    const VolumeOptions& options);

}  // namespace stoker::dataset
