// Whether samples of a source still are what a pack holds of them: makes their payloads again and compares checksums.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "stoker/prepare/payloads.h"

namespace stoker::prepare {

// `pairs`: (position in the source, sample of the pack). Returns the positions whose payload is another one now, or
// cannot be made. Reads every pair; uses threads of its own. Throws Error(unavailable) when `keep_going` says so.
std::vector<std::uint64_t> find_differing(
    const dataset::DatasetPtr& source, const std::shared_ptr<const dataset::Packed>& pack, const Content& content,
    const std::vector<std::pair<std::uint64_t, std::uint64_t>>& pairs, const PackOptions& options,
    const std::function<bool(std::uint64_t done, std::uint64_t total)>& keep_going);

}  // namespace stoker::prepare
