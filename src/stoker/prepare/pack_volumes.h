// Packs of volumes: every volume of a list as bricks that fit a patch, so that a patch reads little more than itself.
// Blocks; one thread. A run that was interrupted or killed is continued by the next one, volume by volume.
#pragma once

#include <cstdint>
#include <string>

#include "stoker/dataset/volume.h"
#include "stoker/prepare/progress.h"

namespace stoker::prepare {

struct PackVolumesOptions {
  std::string source;        // a volumes.csv, a folder that `stoker prepare dicom` wrote, or one volume
  std::string destination;   // a local folder
  dataset::Extents patch{};  // that will be loaded: bricks are a quarter of it along each axis. 0: 64 x 64 x 64
  dataset::Extents brick{};  // or the brick itself; 0: from the patch
  bool force = false;        // replace what is there, if it is a pack
  bool rebuild = false;      // write all of it again, also where it is up to date: it is damaged
  bool dry_run = false;
  bool measure = false;   // cut some patches from the source and from the pack, once it is written
  TellProgress progress;  // planes read
};

struct PackVolumesReport {
  std::string source, destination;
  dataset::Extents brick{};
  std::uint64_t volumes = 0, masks = 0, resumed = 0;  // resumed: files that were there from an earlier run
  std::uint64_t bytes = 0, source_bytes = 0;
  bool idle = false, dry_run = false;  // idle: the pack is there, and its settings are the same
  // Bytes that a random patch reads, on average, in its source and in the pack; 0: no patch was given.
  double patch_bytes = 0, read_before = 0, read_after = 0;
  // Seconds that a random patch took, on average, from the disk. 0: not measured.
  double patch_s_before = 0, patch_s_after = 0;
  double seconds = 0;  // without measuring
};

PackVolumesReport pack_volumes(const PackVolumesOptions& options);  // throws Error

}  // namespace stoker::prepare
