// What a folder holds: a pack, or a copy made by `stage`. For tests.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "stoker/os/read_file.h"

namespace stoker::prepare {

using Contents = std::map<std::string, std::string>;

// Every file below a folder but the manifest of `stage`.
inline Contents contents_of(const std::string& folder) {
  Contents contents;
  if (!std::filesystem::exists(folder)) return contents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().filename() == ".stage.jsonl") continue;
    contents[std::filesystem::relative(entry.path(), folder).string()] = os::read_text(entry.path().string());
  }
  return contents;
}

}  // namespace stoker::prepare
