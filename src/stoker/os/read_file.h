// Whole files, read in one go; for small ones. From any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::os {

// Throws Error; a file above `limit_bytes` is `unavailable`, and what is not a regular file `unsupported`.
std::vector<std::byte> read_file(std::string_view path, std::uint64_t limit_bytes = std::uint64_t{1} << 40);
// The same as text: for configs, rows and reports.
std::string read_text(std::string_view path, std::uint64_t limit_bytes = std::uint64_t{1} << 26);
// There is something of that name: a file, a folder, or a link that leads nowhere.
bool exists(const std::string& path) noexcept;

}  // namespace stoker::os
