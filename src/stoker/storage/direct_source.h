// A file read past the page cache: O_DIRECT, several requests in flight on a ring of the calling thread's own.
#pragma once

#include <memory>
#include <string>

#include "stoker/storage/source.h"

namespace stoker::storage {

// Null where the file system refuses O_DIRECT. Throws Error for everything else.
std::unique_ptr<Source> open_direct_source(const std::string& path);

// Throws Error(corrupt) if `read` goes past the end of a source.
void check_range(std::string_view name, std::uint64_t size_bytes, const Read& read);

}  // namespace stoker::storage
