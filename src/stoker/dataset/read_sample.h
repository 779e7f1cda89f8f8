// One sample's bytes, whole, read at once by the calling thread: for tools, and for single samples beside the stream of
// batches. See storage/read_whole.h for what is read and where it lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stoker/base/scratch.h"
#include "stoker/dataset/dataset.h"
#include "stoker/storage/read_whole.h"

namespace stoker::dataset {

inline storage::WholeRead read_sample(const Dataset& dataset, std::uint64_t index, Scratch& scratch) {
  char text[storage::kLocationText];
  return storage::read_whole(dataset.locate(index, text), scratch);
}

inline storage::WholeRead read_sample(const Dataset& dataset, std::uint64_t index, std::vector<std::byte>& bytes) {
  char text[storage::kLocationText];
  return storage::read_whole(dataset.locate(index, text), bytes);
}

}  // namespace stoker::dataset
