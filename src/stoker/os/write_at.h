// Changes a file through its descriptor, at places that the caller names: writes there, and cuts the file. From any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stoker::os {

// One write, repeated only after a signal. Returns the bytes that it wrote, perhaps fewer than asked for, or a negated
// error number. A failure on purpose with `short_bytes` writes everything and reports fewer: O_DIRECT takes whole
// blocks only.
std::int64_t write_some_at(int fd, std::span<const std::byte> bytes, std::uint64_t offset) noexcept;

// Makes the file exactly `bytes` long. Returns 0 or the error number.
int set_file_size(int fd, std::uint64_t bytes) noexcept;

}  // namespace stoker::os
