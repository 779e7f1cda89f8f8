// Finds objects that a list names one by one: how long they are, and which version. Where most of what lies around them
// is wanted too, one listing answers for all; the others are asked for, many at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stoker/dataset/dataset.h"
#include "stoker/storage/backend.h"

namespace stoker::dataset {

struct FoundObject {
  std::uint64_t bytes = 0;  // kNoFile: the store has no such object
  std::string version;      // empty: the store tells none
};

// By name, an address without its scheme. `names` are borrowed by the result; they may repeat. Throws Error; with
// OpenOptions::skip_losses an object that cannot be asked for has the size 0, and its reader gets the reason.
std::unordered_map<std::string_view, FoundObject> look_up_objects(const storage::Backend& backend,
                                                                  const std::vector<std::string_view>& names,
                                                                  const OpenOptions& options);

}  // namespace stoker::dataset
