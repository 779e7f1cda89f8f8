// Files as the verbs need them: names that are free, texts, the bytes of one sample, the page cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/dataset/dataset.h"

namespace stoker::cli {

bool exists(const std::string& path);
// Refuses (Error, usage) a path that is there already, unless `force`; `flag` is named in the message.
void require_free(const std::string& path, bool force, std::string_view flag);
// Throws Error.
std::string read_text(const std::string& path);

// All bytes of sample `index`, as it is now. Returns why not, or an empty text.
std::string read_sample(const dataset::Dataset& dataset, std::uint64_t index, std::vector<std::byte>& bytes);

// Drops the files of the data set from the page cache (posix_fadvise; needs no root). `keep_going` is asked now and
// then.
void drop_from_page_cache(const dataset::Dataset& dataset, const std::function<bool(std::uint64_t done)>& keep_going);
// Share of the pages of up to 200 samples that are in the page cache; -1 where it cannot be known (files of others).
double cached_share(const dataset::Dataset& dataset);

}  // namespace stoker::cli
