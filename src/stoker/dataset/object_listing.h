// The objects below an address, from the store or from a listing that was kept in the cache folder.
//
// A store does not tell whether a listing changed, so a kept one is used only where the user asks for it (option
// `listing`). It has the version of every object, and objects are requested by version: one that changed since fails
// loudly, or comes from the disk cache as it was when it was listed. Versions are never mixed. Objects that were added
// since are not seen. A note says all this, and how old the listing is.
// The file has a checksum in every block, and is written whole or not at all. One that is damaged or of another address
// counts as none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stoker/dataset/dataset.h"
#include "stoker/storage/backend.h"

namespace stoker::dataset {

// `folder`: the address without its scheme, with a slash at the end. Calls take() as Backend::list does. Adds to
// `notes` what a user should know. Throws Error.
void list_objects(const storage::Backend& backend, std::string_view folder, const OpenOptions& options,
                  const storage::Backend::Take& take, std::vector<std::string>& notes);

}  // namespace stoker::dataset
