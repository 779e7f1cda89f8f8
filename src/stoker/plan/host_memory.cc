#include "stoker/plan/host_memory.h"

#include <algorithm>

#include <fmt/format.h>

#include "stoker/base/units.h"

namespace stoker::plan {
namespace {

constexpr double kCacheable = 0.9;  // of what remains: the kernel keeps some free

}  // namespace

std::string bytes_text(double bytes) {
  return format_bytes(static_cast<std::uint64_t>(std::max(0.0, bytes)));
}

HostBudget host_budget(const HostUse& use, const HostLimits& limits) {
  HostBudget budget{.limit_bytes = limits.memory_bytes, .shm_limit_bytes = limits.shm_bytes, .unified = limits.unified};
  const auto add = [&](std::string what, double bytes, std::string how) {
    if (bytes <= 0) return;
    budget.total_bytes += bytes;
    budget.lines.push_back({std::move(what), std::move(how), bytes});
  };
  add("main process", use.main_bytes, "its share of what it shares (PSS)");
  double grown = use.worker_bytes + use.worker_growth_per_s * use.seconds;
  if (use.worker_most_bytes > 0) grown = std::min(grown, std::max(use.worker_most_bytes, use.worker_bytes));
  add("workers", use.workers * use.worker_bytes, fmt::format("{:g} x {}", use.workers, bytes_text(use.worker_bytes)));
  if (grown > use.worker_bytes) {
    add("workers' growth", use.workers * (grown - use.worker_bytes),
        fmt::format("{:g} x {} until the end", use.workers, bytes_text(grown - use.worker_bytes)));
  }
  const double queued = use.prefetch_factor * std::max(1.0, use.workers);
  add("prefetched batches", queued * use.batch_bytes, fmt::format("{:g} x {}", queued, bytes_text(use.batch_bytes)));
  if (use.workers > 0) budget.shm_bytes = queued * use.batch_bytes;
  if (use.pin_memory) {
    add("pinned", (use.prefetch_factor + 1) * use.batch_bytes,
        fmt::format("{:g} x {}", use.prefetch_factor + 1, bytes_text(use.batch_bytes)));
  }
  add("cache", use.cache_bytes, "kept on purpose");
  if (limits.unified) add("device", use.device_bytes, "the same memory: counted once, here");
  if (limits.memory_bytes > 0) {
    budget.page_cache_bytes = std::max(0.0, limits.memory_bytes - budget.total_bytes);
    if (limits.dataset_bytes > 0) {
      budget.dataset_fits_cache = limits.dataset_bytes <= kCacheable * *budget.page_cache_bytes;
    }
    const double growth = use.workers * use.worker_growth_per_s;
    const double steady = budget.total_bytes - use.workers * (grown - use.worker_bytes);
    if (growth > 0 && budget.total_bytes > limits.memory_bytes && steady < limits.memory_bytes) {
      budget.full_after_s = (limits.memory_bytes - steady) / growth;
    }
  }
  return budget;
}

}  // namespace stoker::plan
