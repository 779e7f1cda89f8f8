// Writing to a descriptor until everything is written. From any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stoker::os {

// Repeats short and interrupted writes. Returns 0, or the error number: EPIPE where the reader is gone.
int write_all(int fd, std::span<const std::byte> bytes) noexcept;
// The same at an offset of a file; earlier writes do not matter.
int write_all_at(int fd, std::span<const std::byte> bytes, std::uint64_t offset) noexcept;

}  // namespace stoker::os
