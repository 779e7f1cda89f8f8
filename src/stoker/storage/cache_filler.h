// Puts bytes that were read for another reason into the disk cache, as far as there is room: nothing leaves the cache
// for them. Safe from any thread; add() blocks as long as the disk does.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "stoker/storage/location.h"
#include "stoker/storage/object_cache.h"

namespace stoker::storage {

class CacheFiller {
 public:
  // `store`: the identity of the backend that the bytes come from.
  CacheFiller(std::unique_ptr<ObjectCache> cache, std::string store);

  bool has_room(std::uint64_t bytes) const noexcept;
  // A sample: the bytes of the range that a fetcher would ask for. What cannot be kept is left out.
  void add(const Location& where, std::span<const std::byte> bytes) noexcept;

 private:
  std::unique_ptr<ObjectCache> cache_;
  std::string store_;
  std::atomic<std::uint64_t> room_;
};

}  // namespace stoker::storage
