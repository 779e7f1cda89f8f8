// The cached listing of a folder tree: one file per tree in the cache folder, checksummed, read like hostile input.
// A listing that is damaged, of another tree or of another version counts as none.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "stoker/dataset/scan.h"

namespace stoker::dataset {

// `cache_dir`, or $XDG_CACHE_HOME/stoker, or ~/.cache/stoker; empty when none of them is known.
std::string listing_folder(const std::string& cache_dir);
std::string listing_path(const std::string& folder, std::string_view real_path);

// Where the seek index of a data set may be kept; `identity` is its real path, or whatever else stays the same. Empty:
// nowhere.
std::string seek_path(const OpenOptions& options, std::string_view identity);
std::string real_path_of(const std::string& address);  // empty if there is none

std::string to_listing(const ScannedFolder& tree, std::string_view real_path);
// Null unless `bytes` is a whole and sound listing of `real_path`.
std::unique_ptr<ScannedFolder> from_listing(std::string_view bytes, std::string_view real_path);

std::unique_ptr<ScannedFolder> load_listing(const std::string& path, std::string_view real_path);
// Makes the cache folder if needed, and the file whole or not at all. Throws Error.
void save_listing(const std::string& path, std::string_view listing);

}  // namespace stoker::dataset
