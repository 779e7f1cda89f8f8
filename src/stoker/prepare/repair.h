// Rebuilds the damaged samples of a pack from its source; everything else stays as it is. Blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "stoker/dataset/packed.h"
#include "stoker/prepare/check.h"

namespace stoker::prepare {

// `pack` was opened with its problems listed; `shards` are those to be written again though their samples may be
// intact. `seek_is_broken`: seek.bin is rebuilt from the payloads. Sets Damage::repaired or not_repaired. Throws Error
// where nothing could be repaired.
void repair(const CheckOptions& options, std::shared_ptr<const dataset::Packed> pack,
            const std::set<std::uint32_t>& shards, bool seek_is_broken, std::vector<Damage>& damaged);

// The options that `settings` of a manifest stand for, for the same pack again.
PackOptions options_of(const dataset::PackManifest& pack);

}  // namespace stoker::prepare
