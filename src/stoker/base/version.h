#pragma once

namespace stoker {
inline constexpr const char* kVersion =
    "0.1.0";  // the same as in CMakeLists.txt and pyproject.toml; a test compares them
}  // namespace stoker
