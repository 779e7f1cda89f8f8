// The Python files that a measured job gets through PYTHONPATH. They are part of this library (made from
// python/stoker/hook when it is built), so that they are found wherever the program lies.
#pragma once

#include <map>
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

// Makes `folder`/hook and `folder`/records; gives `environment`, what a child gets beyond our own, with the variables
// by which its Pythons find the first and write to the second. Throws Error.
std::map<std::string, std::string> install_hook(const std::string& folder,
                                                std::map<std::string, std::string> environment = {});

}  // namespace stoker::measure
