// Many objects and ranges of objects at once, on the caller's thread. See storage/fetcher.h for the contract.
#pragma once

#include <memory>

#include "stoker/storage/fetcher.h"
#include "stoker/storage/s3/session.h"

namespace stoker::storage::s3 {

// `depth`: the most requests in flight. Throws Error.
std::unique_ptr<Fetcher> make_s3_fetcher(std::shared_ptr<Session> session, std::size_t depth);

}  // namespace stoker::storage::s3
