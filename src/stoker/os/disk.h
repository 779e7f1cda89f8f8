// The file system below a path: how much room it has, and a sync of all that was written to it. From any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stoker::os {

// Bytes that a user without privileges may still write below `folder`; none: the file system does not say.
std::optional<std::uint64_t> free_bytes(const std::string& folder) noexcept;

// Everything that was written to the file system of the open `folder` is on the disk when this returns. One call costs
// less than an fsync for each of many small files. Throws Error, naming `name`.
void sync_file_system(int folder, std::string_view name);

}  // namespace stoker::os
