// The flags of `load` that are about volumes, and what they ask for. Single-threaded.
#pragma once

#include <optional>
#include <string>

#include "stoker/dataset/volumes.h"

#include "flags.h"
#include "terminal.h"

namespace stoker::cli {

Section volume_flags();
// None: `--patch` was not given, and no other flag of volumes may be. Throws Error(usage).
std::optional<dataset::VolumesOptions> volumes_request(const Arguments& arguments);
// A volumes.csv, or one volume, under a bar; Ctrl-C ends it. Throws Error.
dataset::DatasetPtr open_patches(const Face& face, const std::string& address, const dataset::VolumesOptions& options,
                                 dataset::OpenOptions opening);

}  // namespace stoker::cli
