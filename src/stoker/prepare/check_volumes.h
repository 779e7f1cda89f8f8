// Whether every brick of a pack of volumes is the one that was packed, and the repair of one that is not.
// Blocks; one thread.
#pragma once

#include <optional>
#include <string>

#include "stoker/dataset/volume_pack.h"
#include "stoker/prepare/check.h"

namespace stoker::prepare {

// Returns none where the address is not a pack of volumes. A damaged or missing pack.json counts as damage. With
// CheckOptions::repair, all volumes are packed again from their source. Throws Error if that fails, or if the pack
// cannot be read.
std::optional<CheckReport> check_volumes(const CheckOptions& options);

// Compares the sum of every brick. Damage names the brick.
CheckReport check_volume_pack(const std::string& address, const dataset::VolumePack& pack,
                              const TellProgress& progress);

}  // namespace stoker::prepare
