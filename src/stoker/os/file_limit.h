// The limits that the system sets to this process.
#pragma once

#include <cstdint>

namespace stoker::os {

inline constexpr std::uint64_t kNoFileLimit = ~std::uint64_t{0};

// How many files this process may have open (`ulimit -n`); kNoFileLimit where there is no limit.
std::uint64_t open_file_limit() noexcept;

}  // namespace stoker::os
