// pack.json again, from what else a pack holds: index.npy, names.txt, columns.csv, the heads of the shards, and what
// can still be read of the damaged text. Reads only; the caller writes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stoker/dataset/pack_format.h"

namespace stoker::prepare {

struct RemadeManifest {
  dataset::PackManifest pack;
  std::vector<std::string> notes;  // what could not be had again: class names, settings
};

// `damaged` is the pack.json that cannot be used, or empty. Throws Error(corrupt) naming what is not whole: the index,
// the names, or a shard that does not hold what the index says.
RemadeManifest remake_manifest(const std::string& address, std::string_view damaged);

}  // namespace stoker::prepare
