// A pack as those see it who write, check and repair packs: a data set with its manifest, index and shards.
// As any data set: immutable, safe from any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stoker/dataset/dataset.h"
#include "stoker/dataset/pack_format.h"

namespace stoker::dataset {

class Packed : public Dataset {
 public:
  virtual const PackManifest& manifest() const noexcept = 0;
  virtual PackRow row(std::uint64_t index) const noexcept = 0;
  virtual const storage::Source& shard(std::uint64_t number) const noexcept = 0;
};

// A shard that is missing, cut short or has a broken head.
struct ShardProblem {
  std::uint32_t shard = 0;
  std::string cause;
};

// Throws Error, as open() does. With `problems`, broken shards are listed there instead: reading their samples may
// fail.
std::shared_ptr<const Packed> open_packed(const std::string& address, const OpenOptions& options = {},
                                          std::vector<ShardProblem>* problems = nullptr);

}  // namespace stoker::dataset
