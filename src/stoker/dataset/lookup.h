// Looks up many files at once, in parallel: their sizes, or that they are not there.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/dataset/dataset.h"

namespace stoker::dataset {

inline constexpr std::uint64_t kNoFile = std::numeric_limits<std::uint64_t>::max();

// The size of the regular file `path` below `directory`; kNoFile if it does not exist, or not as a regular file.
// Throws Error(permission) or the like where that cannot be told.
std::uint64_t size_of_file(int directory, const char* path);

// Why size_of_file gave kNoFile: "no such file: `x`", "`x` is a pipe, not a file".
std::string why_no_file(int directory, const char* path, std::string_view name);

// sizes[i] = size_of(i) for every i, on OpenOptions::threads threads. With OpenOptions::skip_losses a file that cannot
// be looked up has the size 0: it stays in the data set, and whoever reads it gets the reason.
void look_up(std::vector<std::uint64_t>& sizes, const std::function<std::uint64_t(std::uint64_t)>& size_of,
             const OpenOptions& options);

// Which samples repeat an earlier id, and how often it came before: (sample, occurrence from 1), by sample.
std::vector<std::pair<std::uint64_t, std::uint64_t>> find_repeats(
    std::uint64_t count, const std::function<std::uint64_t(std::uint64_t)>& id_of);
// The occurrence of `sample` among equal ids, 0 for the first.
std::uint64_t occurrence(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& repeats,
                         std::uint64_t sample) noexcept;

}  // namespace stoker::dataset
