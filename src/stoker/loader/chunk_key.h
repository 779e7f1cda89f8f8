// Which chunk of which volume. Volumes have numbers of their own: the image and the mask of a pair are two.
#pragma once

#include <cstddef>
#include <cstdint>

#include "stoker/base/hash.h"

namespace stoker::loader {

struct ChunkKey {
  std::uint64_t volume = 0, chunk = 0;

  bool operator==(const ChunkKey&) const = default;
  struct Hash {
    std::size_t operator()(const ChunkKey& key) const noexcept {
      return static_cast<std::size_t>(mix(key.volume, key.chunk));
    }
  };
};

}  // namespace stoker::loader
