#include "stoker/storage/cache_filler.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace stoker::storage {

CacheFiller::CacheFiller(std::unique_ptr<ObjectCache> cache, std::string store)
    : cache_(std::move(cache)), store_(std::move(store)) {
  room_ = cache_->limit_bytes() - std::min(cache_->limit_bytes(), cache_->contents().used_bytes);
}

bool CacheFiller::has_room(std::uint64_t bytes) const noexcept {
  return bytes > 0 && CacheTable::charge(bytes) <= room_.load(std::memory_order_relaxed);
}

void CacheFiller::add(const Location& where, std::span<const std::byte> bytes) noexcept {
  const std::optional<CacheKey> key = cache_key(where, store_);
  if (!key) return;
  const std::uint64_t need = CacheTable::charge(bytes.size());
  std::uint64_t room = room_.load(std::memory_order_relaxed);
  do {
    if (need > room) return;
  } while (!room_.compare_exchange_weak(room, room - need, std::memory_order_relaxed));
  ObjectCache::Lookup lookup{*key, bytes.size(), {}, ObjectCache::Found::outside, 0};
  cache_->look({&lookup, 1});
  // What is there already, or what another process fetches, takes no room of ours.
  if (lookup.found != ObjectCache::Found::claimed || !cache_->store(*key, bytes)) room_.fetch_add(need);
}

}  // namespace stoker::storage
