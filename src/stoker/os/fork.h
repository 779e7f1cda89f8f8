// Tells whether this process is a fork of the one that made an object. Threads do not survive a fork, so neither do
// loaders.
#pragma once

#include <cstdint>

namespace stoker::os {

// A number that changes in every child made by fork(). Compare the one at construction with the one now.
std::uint64_t fork_generation() noexcept;

}  // namespace stoker::os
