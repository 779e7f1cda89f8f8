// One sample's bytes, whole, read at once by the calling thread: for tools, and for single samples beside the stream of
// batches. See storage/read_whole.h for what is read and where it lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stoker/base/scratch.h"
#include "stoker/dataset/dataset.h"
#include "stoker/storage/read_whole.h"

namespace stoker::dataset {

// All parts of a row, one after another. What a row of several parts takes of `scratch` does not depend on the storage.
storage::WholeRead read_row(const Dataset& dataset, std::uint64_t index, const RowKey& key, Scratch& scratch);

// Where the parts of a row are, in order, without the text of their names. The function clears `parts` first.
void locate_parts(const Dataset& dataset, std::uint64_t index, const RowKey& key,
                  std::vector<storage::Location>& parts);

// The same where no epoch has begun: of rows of several parts, those that seed 0 and epoch 0 choose.
storage::WholeRead read_sample(const Dataset& dataset, std::uint64_t index, Scratch& scratch);
storage::WholeRead read_sample(const Dataset& dataset, std::uint64_t index, std::vector<std::byte>& bytes);

// Why the whole of a file could not be read at once: its size was `listed`, and is `now`.
std::string size_changed_cause(std::uint64_t listed, std::uint64_t now);

}  // namespace stoker::dataset
