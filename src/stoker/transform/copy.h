// Copying rows that nobody here reads again soon. Pure; from any thread.
#pragma once

#include <cstddef>

namespace stoker::transform {

// memcpy whose stores go past the caches: no line of `to` is read first, and none is driven out. Worth it where the
// whole destination is larger than the caches (rows of 16,000 bytes into batches of 16 MB: 12 % more of them).
// CPUs without AVX: memcpy.
void copy_past_cache(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

}  // namespace stoker::transform
