// The fetcher of a store with a disk cache before it: what the cache has comes from local files, beside requests to the
// store, and all of it is waited for in one place. What the store sends is written to the cache from the caller's
// buffer before the caller gets it; where the disk cannot follow, it is not kept. A request for an object that another
// process fetches waits for that one, until it is there, or its process is gone, or kPatience has passed.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "stoker/storage/fetcher.h"

namespace stoker::storage {

class Backend;

inline constexpr auto kPatience = std::chrono::seconds(10);  // with a process that may have been stopped

// `options.cache` is not null.
std::unique_ptr<Fetcher> make_cached_fetcher(const Backend& backend, const FetcherOptions& options,
                                             std::string* fallback_reason = nullptr);

}  // namespace stoker::storage
