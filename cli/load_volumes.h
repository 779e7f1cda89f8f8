// The flags of `load` that are about volumes, and what they ask for. Single-threaded.
#pragma once

#include <optional>
#include <string>

#include "stoker/dataset/volumes.h"

#include "flags.h"

namespace stoker::cli {

Section volume_flags();
// None: `--patch` was not given, and no other flag of volumes may be. Throws Error(usage).
std::optional<dataset::VolumesOptions> volumes_request(const Arguments& arguments);
// A volumes.csv, or one volume. Throws Error.
dataset::DatasetPtr open_patches(const std::string& address, const dataset::VolumesOptions& options,
                                 const dataset::OpenOptions& opening);

}  // namespace stoker::cli
