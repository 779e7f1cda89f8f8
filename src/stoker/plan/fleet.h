// Many nodes that train together and read one object store: how long their epochs take, what limits them, what the
// store is asked for, what that costs, and what to change. Pure arithmetic; from any thread.
//
// N nodes share an epoch of S samples and D bytes: each sample is read once, and every epoch deals the samples out
// again. If the nodes find the share h of the bytes on their own disks, the epoch takes the longest of these times:
//
//   node (accelerator, cores)  S / N / per_s
//   fetch                      (1 - h) S / N / fetch_per_s
//   NIC                        (1 - h) D / N / nic_bytes_per_s
//   disk                       D / N / disk_bytes_per_s, with a cache or a copy: hits are read, misses are written
//   store requests             (1 - h) R / (requests_per_s x prefixes), for R requests in an epoch
//   store bandwidth            (1 - h) D / bytes_per_s
//
// from the store   h = 0.
// disk cache       h = min(C / D, 1 - (1 - 1/N)^e) in epoch e, for C bytes on each node: a node caches what it reads,
//                  which is one N-th of the data in each epoch.
// cache by node    h = 0 in epoch 0, then min(C / (D / N), 1): shuffle=nodes gives a node the same samples each time.
// staged once      h = 1. Before epoch 0 each node copies all: N x D bytes, N x max(R, D / kPieceBytes) requests.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/plan/prices.h"

namespace stoker::plan {

// What sets the time of an epoch. `node`: the node's own rate as it was given, whose cause is not known.
enum class FleetLimit : std::uint8_t { node, accelerator, cores, fetch, nic, disk, store_requests, store_bandwidth };
std::string_view name(FleetLimit limit) noexcept;  // "NIC", "store requests"
bool is_of_store(FleetLimit limit) noexcept;       // requests or bandwidth, which more nodes do not widen

// 0: no limit, or not known.
struct FleetNode {
  double per_s = 0;  // samples that a node trains on if it has the data at hand
  FleetLimit limit = FleetLimit::node;
  double fetch_per_s = 0;  // samples that a node was seen to fetch from the store
  double nic_bytes_per_s = 0, disk_bytes_per_s = 0;
  std::optional<double> cache_bytes = {};  // of the disk cache of a node; none: it holds the data set
};

struct FleetStore {
  double requests_per_s = 5500;  // of one prefix: GET requests that S3 promises
  double prefixes = 1;           // over which the samples are spread evenly
  double bytes_per_s = 0;        // of all nodes together
};

struct FleetInput {
  double samples = 0, bytes = 0;  // of the data set, both above 0; a sample is one request
  FleetNode node = {};            // per_s is above 0
  FleetStore store = {};
  std::optional<StorePrices> prices = {};
  std::optional<double> epochs = {};  // of the run; none: not known
};

struct FleetEpoch {
  double seconds = 0, per_s = 0;  // samples of all nodes
  FleetLimit limit = FleetLimit::node;
  StoreUse use = {};  // of all nodes; the cost is 0 without prices
};

struct FleetRow {
  double nodes = 1;
  StoreAccess access = StoreAccess::from_store;
  FleetEpoch first;        // epoch 0; of a copy with the copying, and with its limit where that takes longer
  FleetEpoch second;       // epoch 1
  FleetEpoch last;         // with caches as full as the run makes them; without a job: as they ever are
  double run_seconds = 0;  // all epochs; 0: no job is known
  StoreUse run_use = {};
};

// What to do where reading from the store limits this many nodes.
struct FleetChange {
  double nodes = 1;
  std::string what = {};    // "prefixes=12"
  std::string change = {};  // what that is, and what it costs
  double last_epoch_s = 0;
  FleetLimit limit = FleetLimit::node;  // of that epoch
  double gain = 1;                      // times as fast as the last epoch from the store
};

struct Fleet {
  FleetInput input = {};
  std::vector<FleetRow> rows;  // for each count of nodes: in the order of StoreAccess; one node has no own order
  std::optional<double> full_at = {};  // nodes that the store just feeds without caches; none: it has no limit
  FleetLimit full_of = FleetLimit::store_requests;
  std::vector<FleetChange> changes;  // for each count that the store, the NIC or fetching limits; fastest first
};

inline constexpr double kPieceBytes = 8.0 * (1 << 20);    // of `stoker stage`: a larger object takes several requests
inline constexpr double kBlockBytes = 512.0 * (1 << 10);  // that shuffle=blocks reads with one request
inline constexpr double kMostNodes = 1e6;

Fleet plan_fleet(const FleetInput& input, std::span<const double> nodes);

}  // namespace stoker::plan
