// The limits that the system sets to this process. From any thread.
#pragma once

#include <cstdint>

namespace stoker::os {

inline constexpr std::uint64_t kNoFileLimit = ~std::uint64_t{0};

// How many files this process may have open (`ulimit -n`); kNoFileLimit where there is no limit.
std::uint64_t open_file_limit() noexcept;

// Raises that limit to `wanted`, or as far as the hard limit (`ulimit -Hn`) lets it; never lowers it. For the whole
// process, also for programs that it starts later. Returns the limit now.
std::uint64_t raise_open_file_limit(std::uint64_t wanted) noexcept;

}  // namespace stoker::os
