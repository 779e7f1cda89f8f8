// Writing to a descriptor until everything is written. From any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stoker::os {

// Repeats short and interrupted writes. Returns 0, or the error number: EPIPE where nobody listens.
int write_all(int fd, std::span<const std::byte> bytes) noexcept;
// The same at a place of a file, whatever was written to it before.
int write_all_at(int fd, std::span<const std::byte> bytes, std::uint64_t offset) noexcept;

}  // namespace stoker::os
