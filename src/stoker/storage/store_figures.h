// What was asked of stores, and what the disk cache answered instead. Reads of local files are not counted.
// A thread counts in StoreCounters; any thread may read them.
#pragma once

#include <atomic>
#include <cstdint>

namespace stoker::storage {

struct StoreFigures {
  std::uint64_t requests = 0;      // sent to stores; retries, and second requests for slow objects, included
  std::uint64_t retries = 0;       // of requests that failed in a way that may pass
  std::uint64_t doubled = 0;       // requests for objects that were slow to come, sent a second time
  std::uint64_t store_bytes = 0;   // of objects, as stores sent them
  std::uint64_t cache_hits = 0;    // reads that the disk cache answered
  std::uint64_t cache_misses = 0;  // reads that it could have answered, and a store did
  std::uint64_t cache_bytes = 0;   // that the disk cache gave

  StoreFigures& operator+=(const StoreFigures& more) noexcept {
    requests += more.requests;
    retries += more.retries;
    doubled += more.doubled;
    store_bytes += more.store_bytes;
    cache_hits += more.cache_hits;
    cache_misses += more.cache_misses;
    cache_bytes += more.cache_bytes;
    return *this;
  }
  // What came since `before`.
  StoreFigures operator-(const StoreFigures& before) const noexcept {
    return {requests - before.requests,       retries - before.retries,       doubled - before.doubled,
            store_bytes - before.store_bytes, cache_hits - before.cache_hits, cache_misses - before.cache_misses,
            cache_bytes - before.cache_bytes};
  }
  bool is_any() const noexcept { return requests + cache_hits > 0; }
};

struct StoreCounters {
  std::atomic<std::uint64_t> requests{0}, retries{0}, doubled{0}, store_bytes{0}, cache_hits{0}, cache_misses{0},
      cache_bytes{0};

  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t more = 1) noexcept {
    counter.fetch_add(more, std::memory_order_relaxed);
  }
  StoreFigures read() const noexcept {
    return {requests.load(std::memory_order_relaxed),   retries.load(std::memory_order_relaxed),
            doubled.load(std::memory_order_relaxed),    store_bytes.load(std::memory_order_relaxed),
            cache_hits.load(std::memory_order_relaxed), cache_misses.load(std::memory_order_relaxed),
            cache_bytes.load(std::memory_order_relaxed)};
  }
};

}  // namespace stoker::storage
