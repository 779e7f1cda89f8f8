// A Fetcher on an io_uring: opens, reads and closes of many files in flight from one thread.
#pragma once

#include <memory>
#include <string>

#include "stoker/storage/fetcher.h"

namespace stoker::storage {

// Null where io_uring is refused; `reason` then says why in one sentence.
std::unique_ptr<Fetcher> try_make_ring_fetcher(const FetcherOptions& options, std::string& reason);

}  // namespace stoker::storage
