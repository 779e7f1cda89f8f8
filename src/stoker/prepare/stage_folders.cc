#include "stoker/prepare/stage_folders.h"

#include <algorithm>
#include <filesystem>

namespace stoker::prepare {

namespace fs = std::filesystem;

bool holds_no_file(const std::string& folder) {
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->is_symlink() || !at->is_directory()) return false;
  }
  return !error;
}

std::vector<std::string> find_empty_folders(const std::string& destination, std::span<const StagePart> parts) {
  std::vector<std::string> found;
  for (const StagePart& part : parts) {
    const std::vector<std::string> wanted = part.class_folders();
    if (wanted.empty()) continue;
    std::error_code error;
    const fs::path root = part.folder.empty() ? fs::path(destination) : fs::path(destination) / part.folder;
    for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error)) {
      const std::string path = fs::path(*at).lexically_relative(destination).string();
      if (at->path().filename().string().starts_with('.') || !at->is_directory() || at->is_symlink()) continue;
      if (std::find(wanted.begin(), wanted.end(), path) != wanted.end() || !holds_no_file(at->path().string()))
        continue;
      found.push_back(path);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace stoker::prepare
