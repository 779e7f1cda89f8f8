// What reading from an object store costs at the user's prices: an epoch and the whole run, read from the store itself,
// through a disk cache, and from a copy. Pure arithmetic; from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "stoker/plan/duration.h"

namespace stoker::plan {

// In any currency. 0: it costs nothing.
struct StorePrices {
  double per_1000_requests = 0;
  double per_gb = 0;                             // of 10^9 bytes that leave the store
  std::optional<double> cache_limit_bytes = {};  // of the disk cache; none: it holds the data set
};

double cost_of(const StorePrices& prices, double requests, double bytes);

// Asked of the store, and what that costs.
struct StoreUse {
  double requests = 0, bytes = 0, cost = 0;
};

// cache_by_node: a disk cache, where shuffle=nodes keeps each sample on its node; of one node it is a disk cache.
enum class StoreAccess : std::uint8_t { from_store, disk_cache, staged, cache_by_node };
std::string_view name(StoreAccess access) noexcept;  // "from the store", "disk cache", "staged once"

struct StoreCost {
  StoreAccess access = StoreAccess::from_store;
  StoreUse first_epoch;         // of a copy: the copying
  StoreUse later_epoch;         // each
  std::optional<StoreUse> run;  // none: no job is known
};

// One machine, one run: each machine has its own cache and its own copy. A sample is one request; the listing (one
// request for 1,000 objects) and retries are not counted. `samples` and `bytes` are of the data set. The costs come in
// the order of StoreAccess.
std::vector<StoreCost> store_costs(const StorePrices& prices, double samples, double bytes, const Job& job);

}  // namespace stoker::plan
