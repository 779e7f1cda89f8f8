// Where the patches of an epoch lie in their volumes: a pure function of (seed, epoch, id) and of the sample's number.
// Sample numbers run volume by volume, and inside a volume along its chunks, so that neighbours share chunks.
// Immutable once made, and safe from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stoker/dataset/dataset.h"
#include "stoker/dataset/foreground.h"
#include "stoker/dataset/volume.h"

namespace stoker::dataset {

enum class Sampling : std::uint8_t {
  uniform,  // every corner is equally likely. The patches of an epoch are spread evenly: each has its own share of them
  grid,     // every patch of a regular grid that covers the volume, once: for inference
};

struct PatchOptions {
  Extents patch{};            // z, y, x
  std::uint64_t samples = 0;  // patches of an epoch, of all volumes together; of a grid: 0, it counts them
  Sampling sampling = Sampling::uniform;
  Extents overlap{};           // of neighbours in the grid, in elements
  double foreground = 0;       // the share of a volume's patches that contain label
  bool pad = false;            // a volume smaller than the patch gets zeros behind its end; false: it is refused
  std::array<bool, 3> flip{};  // z, y, x: whether the axis is mirrored at random
  bool turn = false;           // a random number of quarter turns in the plane of y and x
};

// One patch. The axes that `flip` names are mirrored first, then the plane of y and x is turned as numpy.rot90 does.
struct Placement {
  std::uint32_t volume = 0;
  Extents corner{};
  std::array<bool, 3> flip{};
  std::uint8_t quarter_turns = 0;
};

// What the plan knows of one volume.
struct PatchedVolume {
  std::string name;  // for messages
  Extents extents{};
  Extents cell{};                                // sample numbers run along cells of this size: its chunks
  double weight = 1;                             // its share of the samples, relative to the others
  std::shared_ptr<const Foreground> foreground;  // null: unknown
};

class PatchPlan {
 public:
  // Throws Error(usage), naming the option or the volume.
  PatchPlan(const PatchOptions& options, std::vector<PatchedVolume> volumes);

  std::uint64_t size() const noexcept { return firsts_.back(); }
  std::uint32_t volume_of(std::uint64_t index) const noexcept;
  Placement place(std::uint64_t index, const RowKey& key) const noexcept;
  // The part of the patch that lies inside its volume; all of it unless the volume is padded.
  Extents inside(std::uint32_t volume) const noexcept;

  const PatchOptions& options() const noexcept { return options_; }
  const std::vector<PatchedVolume>& volumes() const noexcept { return volumes_; }
  std::uint64_t memory_bytes() const noexcept;

 private:
  Extents corners(std::uint32_t volume) const noexcept;  // how many along each axis
  Extents grid_of(std::uint32_t volume) const noexcept;  // how many patches of the grid along each axis
  Extents place_on_grid(std::uint32_t volume, std::uint64_t number) const noexcept;
  void share_samples();

  PatchOptions options_;
  std::vector<PatchedVolume> volumes_;
  std::vector<std::uint64_t> firsts_;  // the first sample of each volume, and the end
};

}  // namespace stoker::dataset
