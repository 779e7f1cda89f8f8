// The objects of a store below an address, as the tree of folders that their names make: what scan.h does for files.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/dataset/scan.h"
#include "stoker/storage/backend.h"

namespace stoker::dataset {

// `folder`: the address without its scheme, with a slash at the end. Adds to `notes` what a user should know of the
// listing. Throws Error.
std::unique_ptr<ScannedFolder> scan_objects(const storage::Backend& backend, std::string_view folder,
                                            const OpenOptions& options, std::vector<std::string>& notes);

}  // namespace stoker::dataset
