// A Fetcher of plain system calls, one request after another inside wait(): where io_uring is refused, and for mmap.
#pragma once

#include <memory>

#include "stoker/storage/fetcher.h"

namespace stoker::storage {

std::unique_ptr<Fetcher> make_plain_fetcher(const FetcherOptions& options);

}  // namespace stoker::storage
