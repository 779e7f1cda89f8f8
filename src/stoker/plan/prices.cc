#include "stoker/plan/prices.h"

#include <algorithm>

namespace stoker::plan {
namespace {

constexpr double kGB = 1e9;

StoreUse times(const StoreUse& use, double factor) {
  return {use.requests * factor, use.bytes * factor, use.cost * factor};
}

StoreUse sum(const StoreUse& a, const StoreUse& b) {
  return {a.requests + b.requests, a.bytes + b.bytes, a.cost + b.cost};
}

}  // namespace

std::string_view name(StoreAccess access) noexcept {
  switch (access) {
    case StoreAccess::from_store:
      return "from the store";
    case StoreAccess::disk_cache:
      return "disk cache";
    case StoreAccess::cache_by_node:
      return "disk cache, shuffle=nodes";
    case StoreAccess::staged:
      return "staged once";
  }
  return "";
}

double cost_of(const StorePrices& prices, double requests, double bytes) {
  return requests / 1000 * prices.per_1000_requests + bytes / kGB * prices.per_gb;
}

std::vector<StoreCost> store_costs(const StorePrices& prices, double samples, double bytes, const Job& job) {
  const StoreUse all{samples, bytes, cost_of(prices, samples, bytes)};
  // The cache keeps what is used next, so that a share of the reads as large as itself is a hit.
  const double limit = prices.cache_limit_bytes.value_or(bytes);
  const double kept = bytes > 0 ? std::clamp(limit / bytes, 0.0, 1.0) : 1;
  std::vector<StoreCost> costs = {{StoreAccess::from_store, all, all, {}},
                                  {StoreAccess::disk_cache, all, times(all, 1 - kept), {}},
                                  {StoreAccess::staged, all, {}, {}}};
  if (job.images <= 0 || samples <= 0) return costs;
  const double epochs = job.images / samples;
  for (StoreCost& cost : costs) {
    const bool copies_all = cost.access == StoreAccess::staged;
    cost.run = sum(times(cost.first_epoch, copies_all ? 1 : std::min(1.0, epochs)),
                   times(cost.later_epoch, std::max(0.0, epochs - 1)));
  }
  return costs;
}

}  // namespace stoker::plan
