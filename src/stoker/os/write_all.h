// Writing to a descriptor until everything is written. From any thread.
#pragma once

#include <cstddef>
#include <span>

namespace stoker::os {

// Repeats short and interrupted writes. Returns 0, or the error number: EPIPE where nobody listens.
int write_all(int fd, std::span<const std::byte> bytes) noexcept;

}  // namespace stoker::os
