// When the files behind a pack's samples last changed, noted while their content was that of the pack: a cache, one
// file per pack in the cache folder. The time is the file system's own (ctime): every change of a file moves it, and no
// program can set it back. A file that still has its time is the one that was packed; any other is compared by content.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "stoker/dataset/packed.h"
#include "stoker/prepare/journal.h"

namespace stoker::prepare {

inline constexpr std::int64_t kUnknownTime = 0;

// What a pack holds, wherever it lies in its shards: the ids and checksums of its samples, in their order.
std::uint64_t content_key(const dataset::Packed& pack) noexcept;
std::uint64_t content_key(std::span<const JournalRow> rows) noexcept;  // sorted by position

// Where the times of the pack at `destination` are kept; empty: nowhere.
std::string times_path(const std::string& cache_dir, const std::string& destination);
// One per sample; empty if the file is not there, is damaged, or belongs to another content.
std::vector<std::int64_t> load_times(const std::string& path, std::uint64_t key, std::uint64_t count);
// Whole or not at all. Throws Error.
void save_times(const std::string& path, std::uint64_t key, std::span<const std::int64_t> times);

}  // namespace stoker::prepare
