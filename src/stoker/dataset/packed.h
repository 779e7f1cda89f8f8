// A pack as those see it who write, check and repair packs: a data set with its manifest, index and shards.
// As any data set: immutable, safe from any thread.
#pragma once

#include <memory>
#include <string>

#include "stoker/dataset/dataset.h"
#include "stoker/dataset/pack_format.h"

namespace stoker::dataset {

class Packed : public Dataset {
 public:
  virtual const PackManifest& manifest() const noexcept = 0;
  virtual PackRow row(std::uint64_t index) const noexcept = 0;
  virtual const storage::Source& shard(std::uint64_t number) const noexcept = 0;
};

// Throws Error, as open() does.
std::shared_ptr<const Packed> open_packed(const std::string& address, const OpenOptions& options = {});

}  // namespace stoker::dataset
