#include "stoker/plan/fleet.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/units.h"

namespace stoker::plan {
namespace {

constexpr double kWorthSaying = 1.02;   // the least gain of a change
constexpr double kMostPrefixes = 1e4;   // that somebody would spread a data set over
constexpr double kMostEpochs = 10'000;  // worked out one by one; of more epochs, neighbours count as one

double cached_share(const FleetInput& input) {
  return std::clamp(input.node.cache_bytes.value_or(input.bytes) / input.bytes, 0.0, 1.0);
}

double hit_share(const FleetInput& input, StoreAccess access, double nodes, double epoch) {
  switch (access) {
    case StoreAccess::from_store:
      return 0;
    case StoreAccess::disk_cache:
      return std::min(cached_share(input), 1 - std::pow(1 - 1 / nodes, epoch));
    case StoreAccess::cache_by_node:
      return epoch < 1 ? 0 : std::min(1.0, nodes * cached_share(input));
    case StoreAccess::staged:
      return 1;
  }
  return 0;
}

// The longest time that was offered, and what takes it.
class Longest {
 public:
  void offer(FleetLimit limit, double work, double per_s) {
    if (per_s <= 0 || work / per_s <= seconds_) return;
    seconds_ = work / per_s;
    limit_ = limit;
  }
  double seconds() const noexcept { return seconds_; }
  FleetLimit limit() const noexcept { return limit_; }

 private:
  double seconds_ = 0;
  FleetLimit limit_ = FleetLimit::node;
};

StoreUse priced(const FleetInput& input, double requests, double bytes) {
  return {requests, bytes, input.prices ? cost_of(*input.prices, requests, bytes) : 0};
}

// `requests`: of a whole epoch, without caches.
FleetEpoch epoch_of(const FleetInput& input, StoreAccess access, double nodes, double requests, double epoch) {
  const FleetNode& node = input.node;
  const double misses = 1 - hit_share(input, access, nodes, epoch);
  const bool uses_disk =
      access == StoreAccess::staged || (access != StoreAccess::from_store && cached_share(input) > 0);
  Longest longest;
  longest.offer(node.limit, input.samples / nodes, node.per_s);
  longest.offer(FleetLimit::fetch, misses * input.samples / nodes, node.fetch_per_s);
  longest.offer(FleetLimit::nic, misses * input.bytes / nodes, node.nic_bytes_per_s);
  if (uses_disk) longest.offer(FleetLimit::disk, input.bytes / nodes, node.disk_bytes_per_s);
  longest.offer(FleetLimit::store_requests, misses * requests, input.store.requests_per_s * input.store.prefixes);
  longest.offer(FleetLimit::store_bandwidth, misses * input.bytes, input.store.bytes_per_s);
  return {longest.seconds(), input.samples / longest.seconds(), longest.limit(),
          priced(input, misses * requests, misses * input.bytes)};
}

// Each node copies all of the data set before it trains.
FleetEpoch copy_of(const FleetInput& input, double nodes) {
  const double requests = nodes * std::max(input.samples, input.bytes / kPieceBytes), bytes = nodes * input.bytes;
  Longest longest;
  longest.offer(FleetLimit::nic, input.bytes, input.node.nic_bytes_per_s);
  longest.offer(FleetLimit::disk, input.bytes, input.node.disk_bytes_per_s);
  longest.offer(FleetLimit::store_requests, requests, input.store.requests_per_s * input.store.prefixes);
  longest.offer(FleetLimit::store_bandwidth, bytes, input.store.bytes_per_s);
  return {longest.seconds(), 0, longest.limit(), priced(input, requests, bytes)};
}

FleetEpoch sum(const FleetEpoch& copy, const FleetEpoch& epoch, double samples) {
  FleetEpoch both = epoch;
  both.seconds += copy.seconds;
  both.per_s = samples / both.seconds;
  if (copy.seconds > epoch.seconds) both.limit = copy.limit;
  both.use.requests += copy.use.requests, both.use.bytes += copy.use.bytes, both.use.cost += copy.use.cost;
  return both;
}

void add(FleetRow& row, const FleetEpoch& epoch, double times) {
  row.run_seconds += times * epoch.seconds;
  row.run_use.requests += times * epoch.use.requests;
  row.run_use.bytes += times * epoch.use.bytes;
  row.run_use.cost += times * epoch.use.cost;
}

FleetRow row_of(const FleetInput& input, StoreAccess access, double nodes) {
  const auto epoch = [&](double number) { return epoch_of(input, access, nodes, input.samples, number); };
  // Without a job: so late that every node has read all samples many times.
  const double last = input.epochs ? std::max(0.0, std::ceil(*input.epochs) - 1) : 100 * nodes;
  FleetRow row{.nodes = nodes, .access = access, .first = epoch(0), .second = epoch(1), .last = epoch(last)};
  const FleetEpoch copy = access == StoreAccess::staged ? copy_of(input, nodes) : FleetEpoch{};
  if (input.epochs) {
    const double stride = std::max(1.0, std::ceil(*input.epochs / kMostEpochs));
    for (double at = 0; at < *input.epochs; at += stride) {
      const double times = std::min(stride, *input.epochs - at);
      add(row, epoch(std::floor(at + std::max(0.0, times - 1) / 2)), times);
    }
    add(row, copy, 1);
  }
  if (access == StoreAccess::staged) row.first = sum(copy, row.first, input.samples);
  return row;
}

std::string percent(double share) {
  return fmt::format("{:.0f} %", 100 * share);
}

// What is worth a change for nodes whose last epoch from the store is `now`.
std::vector<FleetChange> changes_of(const FleetInput& input, const FleetRow& now) {
  std::vector<FleetChange> all;
  const auto offer = [&](std::string what, std::string change, const FleetEpoch& then) {
    const double gain = now.last.seconds / then.seconds;
    if (gain < kWorthSaying) return;
    all.push_back({now.nodes, std::move(what), std::move(change), then.seconds, then.limit, gain});
  };
  const double last = input.epochs ? std::max(0.0, std::ceil(*input.epochs) - 1) : 100 * now.nodes;
  if (now.last.limit == FleetLimit::store_requests) {
    const double blocks = std::min(input.samples, input.bytes / kBlockBytes);
    offer("tar shards", "tar shards or a pack in the store, read with shuffle=blocks: a request brings 512 KiB",
          epoch_of(input, StoreAccess::from_store, now.nodes, blocks, 0));
    FleetInput wide = input;
    wide.store.requests_per_s = 0;  // no limit: what the other limits leave
    const double rest = epoch_of(wide, StoreAccess::from_store, now.nodes, input.samples, 0).seconds;
    const double needed = std::ceil(input.samples / rest / input.store.requests_per_s * (1 - 1e-9));
    wide.store = input.store;
    wide.store.prefixes = std::min(needed, kMostPrefixes);
    offer(fmt::format("prefixes={:g}", wide.store.prefixes),
          fmt::format("spread the objects over {:g} prefixes, such as folders whose names begin differently",
                      wide.store.prefixes),
          epoch_of(wide, StoreAccess::from_store, now.nodes, input.samples, 0));
  }
  const FleetEpoch cached = epoch_of(input, StoreAccess::disk_cache, now.nodes, input.samples, last);
  const double hits = hit_share(input, StoreAccess::disk_cache, now.nodes, last);
  if (cached_share(input) > 0) {
    offer("disk cache",
          fmt::format("a disk cache on each node: it answers {} of the last epoch's reads", percent(hits)), cached);
  }
  if (cached_share(input) > 0 && now.nodes > 1) {
    const FleetEpoch by_node = epoch_of(input, StoreAccess::cache_by_node, now.nodes, input.samples, last);
    if (by_node.seconds < cached.seconds / kWorthSaying) {
      offer("shuffle=nodes",
            fmt::format("a disk cache on each node, and samples that stay on their node: it answers {} of the last "
                        "epoch's reads",
                        percent(hit_share(input, StoreAccess::cache_by_node, now.nodes, last))),
            by_node);
    }
  }
  if (cached_share(input) < 1) {
    FleetInput larger = input;
    larger.node.cache_bytes.reset();
    const FleetEpoch then = epoch_of(larger, StoreAccess::disk_cache, now.nodes, input.samples, last);
    if (then.seconds < cached.seconds / kWorthSaying) {
      offer("larger cache",
            fmt::format("a disk cache of {} on each node: it answers {} of the last epoch's reads",
                        format_bytes(static_cast<std::uint64_t>(input.bytes)),
                        percent(hit_share(larger, StoreAccess::disk_cache, now.nodes, last))),
            then);
    }
  }
  const FleetEpoch copy = copy_of(input, now.nodes);
  offer("stage",
        fmt::format("a copy on each node (`stoker stage`): {} leave the store before epoch 0",
                    format_bytes(static_cast<std::uint64_t>(std::min(copy.use.bytes, 9e18)))),
        epoch_of(input, StoreAccess::staged, now.nodes, input.samples, 0));
  std::ranges::stable_sort(all, std::ranges::greater(), &FleetChange::gain);
  return all;
}

void find_full(Fleet& fleet) {
  const FleetInput& input = fleet.input;
  const double by_requests = input.store.requests_per_s * input.store.prefixes;
  const double by_bytes = input.store.bytes_per_s * input.samples / input.bytes;
  // A node asks the store for what it trains on, or for what it can fetch if that is less.
  const FleetEpoch alone = [&] {
    FleetInput unlimited = input;
    unlimited.store = {.requests_per_s = 0};
    return epoch_of(unlimited, StoreAccess::from_store, 1, input.samples, 0);
  }();
  for (const auto& [limit, per_s] :
       {std::pair(FleetLimit::store_requests, by_requests), std::pair(FleetLimit::store_bandwidth, by_bytes)}) {
    if (per_s <= 0 || per_s / alone.per_s >= fleet.full_at.value_or(INFINITY)) continue;
    fleet.full_at = per_s / alone.per_s;
    fleet.full_of = limit;
  }
}

}  // namespace

std::string_view name(FleetLimit limit) noexcept {
  constexpr std::array<std::string_view, 8> kNames = {"node", "accelerator", "cores",          "fetch",
                                                      "NIC",  "disk",        "store requests", "store bandwidth"};
  return kNames[static_cast<std::size_t>(limit)];
}

bool is_of_store(FleetLimit limit) noexcept {
  return limit == FleetLimit::store_requests || limit == FleetLimit::store_bandwidth;
}

Fleet plan_fleet(const FleetInput& input, std::span<const double> nodes) {
  Fleet fleet{.input = input, .rows = {}, .changes = {}};
  for (const double count : nodes) {
    const FleetRow remote = row_of(input, StoreAccess::from_store, count);
    fleet.rows.push_back(remote);
    for (const StoreAccess access : {StoreAccess::disk_cache, StoreAccess::staged, StoreAccess::cache_by_node}) {
      if (access != StoreAccess::cache_by_node || count > 1) fleet.rows.push_back(row_of(input, access, count));
    }
    const FleetLimit limit = remote.last.limit;
    if (!is_of_store(limit) && limit != FleetLimit::nic && limit != FleetLimit::fetch) continue;
    for (FleetChange& change : changes_of(input, remote)) fleet.changes.push_back(std::move(change));
  }
  find_full(fleet);
  return fleet;
}

}  // namespace stoker::plan
