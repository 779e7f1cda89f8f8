// The Python files that a measured job gets through PYTHONPATH. They are part of this library (made from
// python/stoker/hook when it is built), so that they are found wherever the program lies.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stoker::measure {

struct HookFile {
  std::string_view path;  // relative
  std::string_view text;
};

std::span<const HookFile> hook_files() noexcept;

// Writes them below `folder`, which exists. Throws Error.
void write_hook(const std::string& folder);

}  // namespace stoker::measure
