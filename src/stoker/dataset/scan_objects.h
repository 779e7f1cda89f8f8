// The objects of a store below an address, as the tree of folders that their names make: what scan.h does for files.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "stoker/dataset/scan.h"
#include "stoker/storage/backend.h"

namespace stoker::dataset {

struct ScannedObjects {
  std::unique_ptr<ScannedFolder> tree;
  std::unordered_map<std::string, std::string> versions;  // by path below the address; those without one are left out
};

// `folder`: the address without its scheme, with a slash at the end. Throws Error.
ScannedObjects scan_objects(const storage::Backend& backend, std::string_view folder, const OpenOptions& options);

}  // namespace stoker::dataset
