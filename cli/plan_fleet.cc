#include "plan_fleet.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/units.h"
#include "stoker/plan/answer.h"

namespace stoker::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string seconds_text(double seconds) {
  const plan::TimeUnit unit = plan::time_unit(seconds / 86400);
  return fmt::format("{} {}", plan::in_unit(seconds / 86400, unit), unit.name);
}

std::string count_text(double count) {
  return count < 1e15 ? format_count(static_cast<std::uint64_t>(std::llround(count))) : fmt::format("{:.3g}", count);
}

std::string bytes_text(double bytes) {
  return format_bytes(static_cast<std::uint64_t>(std::clamp(bytes, 0.0, 9e18)));
}

// Small costs keep three digits, large ones two decimals.
std::string cost_text(double cost) {
  return cost > 0 && cost < 1 ? fmt::format("{:.3g}", cost) : fmt::format("{:.2f}", cost);
}

std::string label_of(const plan::FleetRow& row) {
  return fmt::format("{} {}, {}", count_text(row.nodes), row.nodes == 1 ? "node" : "nodes", name(row.access));
}

Rows times_of(const plan::Fleet& fleet) {
  Rows rows = {{"many nodes and one store", "epoch 0", "limit", "epoch 1", "last epoch", "images/s", "limit"}};
  if (fleet.input.epochs) rows[0].emplace_back("the run");
  for (const plan::FleetRow& row : fleet.rows) {
    rows.push_back({label_of(row), seconds_text(row.first.seconds), std::string(name(row.first.limit)),
                    seconds_text(row.second.seconds), seconds_text(row.last.seconds), format_rate(row.last.per_s),
                    std::string(name(row.last.limit))});
    if (fleet.input.epochs) rows.back().push_back(seconds_text(row.run_seconds));
  }
  return rows;
}

Rows uses_of(const plan::Fleet& fleet) {
  const plan::FleetInput& input = fleet.input;
  Rows rows = {{"asked of the store", "requests 0", "received 0", "requests last", "received last"}};
  if (input.prices) {
    for (const char* title : {"cost 0", "cost last"}) rows[0].emplace_back(title);
    if (input.epochs) rows[0].emplace_back("the run");
  }
  for (const plan::FleetRow& row : fleet.rows) {
    rows.push_back({label_of(row), count_text(row.first.use.requests), bytes_text(row.first.use.bytes),
                    count_text(row.last.use.requests), bytes_text(row.last.use.bytes)});
    if (!input.prices) continue;
    for (const double cost : {row.first.use.cost, row.last.use.cost}) rows.back().push_back(cost_text(cost));
    if (input.epochs) rows.back().push_back(cost_text(row.run_use.cost));
  }
  return rows;
}

std::string rate_text(double bytes_per_s) {
  return bytes_per_s > 0 ? fmt::format("{} MB/s", format_rate(bytes_per_s / 1e6)) : "no limit given";
}

}  // namespace

std::string fleet_text(const plan::Fleet& fleet, const Terminal& terminal) {
  const plan::FleetInput& input = fleet.input;
  std::string out = table(times_of(fleet), "  ") + table(uses_of(fleet), "  ");
  const auto row = [&](std::string_view label, const std::string& text) {
    out += labelled(terminal, label, 9, printable(text));
  };
  row("data",
      fmt::format("{} samples, {}; a sample is one request", count_text(input.samples), bytes_text(input.bytes)));
  row("node", fmt::format("{} images/s; NIC {}; disk {}; cache {}", format_rate(input.node.per_s),
                          rate_text(input.node.nic_bytes_per_s), rate_text(input.node.disk_bytes_per_s),
                          input.node.cache_bytes ? bytes_text(*input.node.cache_bytes) : "as large as the data set"));
  row("store", fmt::format("{} requests/s for each prefix, {} {}; bandwidth {}",
                           format_rate(input.store.requests_per_s), count_text(input.store.prefixes),
                           input.store.prefixes == 1 ? "prefix" : "prefixes", rate_text(input.store.bytes_per_s)));
  if (fleet.full_at) {
    row("", fmt::format("it is full at {} such nodes without caches or copies ({})", format_rate(*fleet.full_at),
                        name(fleet.full_of)));
  }
  if (fleet.changes.empty()) return out;
  // The largest count says most; --json has all.
  const double most = std::ranges::max_element(fleet.changes, {}, &plan::FleetChange::nodes)->nodes;
  for (const plan::FleetChange& one : fleet.changes) {
    if (one.nodes != most) continue;
    row("change", fmt::format("{} at {} nodes: {:.3g}x, {} for the last epoch, then {} the limit: {}", one.what,
                              count_text(most), one.gain, seconds_text(one.last_epoch_s),
                              one.limit == plan::FleetLimit::cores || one.limit == plan::FleetLimit::store_requests
                                  ? fmt::format("{} are", name(one.limit))
                                  : fmt::format("{} is", name(one.limit)),
                              one.change));
  }
  return out;
}

}  // namespace stoker::cli
