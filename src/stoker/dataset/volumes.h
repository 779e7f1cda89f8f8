// Patches of volumes as a data set: which volumes, which patches of them, and what becomes of their values.
// A set is immutable once opened, and safe from any thread. What a call returns is borrowed from the set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stoker/dataset/dataset.h"
#include "stoker/dataset/patches.h"
#include "stoker/dataset/volume.h"

namespace stoker::dataset {

struct VolumeAddress {
  std::string image;
  std::string mask;   // empty: it has none
  double weight = 1;  // its share of the samples, relative to the others
};

// What becomes of the values of a patch. Reals leave as float32.
struct Normalize {
  enum class How : std::uint8_t {
    none,    // as they are stored, in their own type
    zscore,  // (value - mean) / deviation, of each channel of the patch; a patch of one value is all zeros
    window,  // from [low, high] to [0, 1]; what lies beyond is clipped
    scale,   // factor * value + summand
  };
  How how = How::none;
  double first = 0, second = 0;  // low and high of window; factor and summand of scale
};

struct VolumesOptions {
  PatchOptions patches;
  Normalize normalize;
  std::uint32_t level = 0;  // as VolumeOptions
  std::string member, mask_member;
};

struct OpenedVolume {
  std::unique_ptr<Volume> image, mask;  // mask: null, it has none
  double weight = 1;
};

class VolumeSet {
 public:
  // Compares them: dtype, channels, the extents of masks. Reads the masks where patches with label are asked for.
  // Throws Error.
  VolumeSet(std::vector<OpenedVolume> volumes, const VolumesOptions& options, const OpenOptions& opening);

  std::size_t count() const noexcept { return volumes_.size(); }
  const Volume& image(std::uint32_t volume) const noexcept { return *volumes_[volume].image; }
  const Volume* mask(std::uint32_t volume) const noexcept { return volumes_[volume].mask.get(); }
  bool has_masks() const noexcept { return volumes_.front().mask != nullptr; }
  const PatchPlan& plan() const noexcept { return *plan_; }
  const Normalize& normalize() const noexcept { return normalize_; }

  // Parts: the planes of a patch, first of the image, then of the mask. A volume that is mapped, or that has chunks,
  // has none: the worker takes its elements from there. `Ranges` are those of one of the two.
  struct Ranges {
    std::uint32_t count = 0;        // planes; 0: it has no parts
    std::uint64_t plane_bytes = 0;  // of one: from its first element to its last
  };
  Ranges ranges(const Volume& volume, std::uint32_t number) const noexcept;
  std::uint32_t parts(std::uint32_t number) const noexcept;        // of a patch of this volume
  std::uint64_t parts_bytes(std::uint32_t number) const noexcept;  // of all of them
  storage::Location part(const Placement& placement, std::uint32_t part) const noexcept;

  std::uint64_t memory_bytes() const noexcept;

 private:
  void compare() const;
  void make_plan(const VolumesOptions& options, const OpenOptions& opening);

  Normalize normalize_;
  std::vector<OpenedVolume> volumes_;
  std::unique_ptr<PatchPlan> plan_;
};

// Labels are the numbers of the volumes, in the order given. Throws Error. `address` is for people; empty: the first
// volume's.
DatasetPtr from_volumes(std::vector<OpenedVolume> volumes, const VolumesOptions& options,
                        const OpenOptions& opening = {}, const std::string& address = {});
// The same, opened here, in parallel.
DatasetPtr open_volumes(const std::vector<VolumeAddress>& addresses, const VolumesOptions& options,
                        const OpenOptions& opening = {}, const std::string& address = {});

// The rows of a volumes.csv: the column `image`, and where they are there `mask` and `weight`. Or the series of an
// index.csv that `stoker prepare dicom` wrote. Paths are below the csv's folder, or the one above if that folder is
// `_index`. `where` takes the rows whose columns match (where.h); of an index.csv, the series with such a row. Columns
// that the volumes.csv of prepared DICOM lacks are those of the index.csv beside it.
// Throws Error, naming the line.
std::vector<VolumeAddress> read_volumes_csv(const std::string& address, const std::string& where = {});
// The file that names the volumes at an address: a .csv itself, that of a folder which `stoker prepare dicom` wrote, or
// the pack.json of a pack of volumes.
// Empty: the address is one volume.
std::string volumes_csv_of(const std::string& address);

// "72x136x136" or "72,136,136"; one number stands for all three. Throws Error(usage) naming the option.
Extents parse_extents(std::string_view text, std::string_view option);
// "zscore", "none", "window:-1000:400", "scale:0.01:0". Throws Error(usage).
Normalize parse_normalize(std::string_view text);

}  // namespace stoker::dataset
