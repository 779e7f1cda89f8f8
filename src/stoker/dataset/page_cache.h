// The page cache as a data set sees it: for runs that start from the disk, and to know whether one did. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "stoker/dataset/dataset.h"

namespace stoker::dataset {

// Drops the files of the data set from the page cache; needs no root. `keep_going` is asked now and then; throws
// Error(unavailable) where it says no. A file that cannot be opened is left to the loader, which names it.
void drop_from_page_cache(const Dataset& dataset, const std::function<bool(std::uint64_t done)>& keep_going);
// Share of the pages of some samples that are in the page cache. None: it cannot be known (files of others).
std::optional<double> cached_share(const Dataset& dataset);

}  // namespace stoker::dataset
