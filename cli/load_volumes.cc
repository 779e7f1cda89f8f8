#include "load_volumes.h"

#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"

#include "interrupt.h"

namespace stoker::cli {
namespace {

dataset::Sampling sampling_of(const std::string& word) {
  if (word == "uniform") return dataset::Sampling::uniform;
  if (word == "grid") return dataset::Sampling::grid;
  throw Error(ErrorKind::usage, fmt::format("`--sampling` is uniform or grid, not `{}`", word)).about("sampling");
}

}  // namespace

Section volume_flags() {
  return {
      "patches of volumes",
      {{"--patch", "DxHxW", "", "load patches of this size from the volumes of a volumes.csv (image, mask, weight)"},
       {"--samples", "N", "", "patches of an epoch, of all volumes together"},
       {"--sampling", "HOW", "uniform", "uniform at random, or grid: every patch of a grid that covers the volumes"},
       {"--overlap", "DxHxW", "0", "of neighbours in the grid"},
       {"--foreground", "SHARE", "0", "share of the patches that contain label, from 0 to 1; needs masks"},
       {"--normalize", "HOW", "none", "zscore, window:LOW:HIGH, scale:FACTOR:SUMMAND, or none: as stored"},
       {"--flip", "", "", "mirror each axis at random"},
       {"--turn", "", "", "turn by a random number of right angles, in the plane of height and width"},
       {"--pad", "", "", "fill up volumes that are smaller than the patch with zeros"},
       {"--level", "N", "0", "of the pyramid of an OME-Zarr volume; 0 is the finest"}}};
}

std::optional<dataset::VolumesOptions> volumes_request(const Arguments& arguments) {
  if (!arguments.has("--patch")) {
    for (const Flag& flag : volume_flags().flags) {
      if (!arguments.has(flag.name)) continue;
      throw Error(ErrorKind::usage,
                  fmt::format("`{}` is about patches of volumes, and there is no `--patch`", flag.name),
                  "add --patch, such as --patch 72x136x136");
    }
    return std::nullopt;
  }
  dataset::VolumesOptions options;
  dataset::PatchOptions& patches = options.patches;
  patches.patch = dataset::parse_extents(arguments.text("--patch"), "patch");
  patches.sampling = sampling_of(arguments.text("--sampling"));
  if (arguments.has("--samples")) patches.samples = arguments.count("--samples");
  patches.overlap = dataset::parse_extents(arguments.text("--overlap"), "overlap");
  patches.foreground = arguments.number("--foreground");
  if (arguments.has("--flip")) patches.flip = {true, true, true};
  patches.turn = arguments.has("--turn");
  patches.pad = arguments.has("--pad");
  options.normalize = dataset::parse_normalize(arguments.text("--normalize"));
  options.level = static_cast<std::uint32_t>(arguments.count("--level"));
  return options;
}

dataset::DatasetPtr open_patches(const Face& face, const std::string& address, const dataset::VolumesOptions& options,
                                 dataset::OpenOptions opening) {
  Bar bar(face, "opening volumes");
  opening.progress = [&](std::uint64_t seen) {
    bar.update(seen, "volumes and parts of masks");
    return !interrupted();
  };
  if (const std::string csv = dataset::volumes_csv_of(address); !csv.empty()) {
    const std::string where = std::exchange(opening.where, {});
    return dataset::open_volumes(dataset::read_volumes_csv(csv, where), options, opening, address);
  }
  return dataset::open_volumes({{address, "", 1}}, options, opening, address);
}

}  // namespace stoker::cli
