// The host's memory as a sum of named lines against the limit that holds: the cgroup's or the machine's, and /dev/shm
// apart. Where device and host share one memory there is one sum and one limit. Pure arithmetic; from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stoker::plan {

// What the processes take. Bytes; 0: none, or not known.
struct HostUse {
  double main_bytes = 0;           // the training process (PSS)
  double workers = 0;              // processes; 0 for a loader of threads
  double worker_bytes = 0;         // private memory of one (USS), not RSS: shared pages count once, in main
  double worker_growth_per_s = 0;  // of one worker's private memory
  double seconds = 0;              // that the run lasts, for the growth
  double worker_most_bytes = 0;    // its growth ends there (its RSS); 0: not known
  double batch_bytes = 0;          // one finished batch
  double prefetch_factor = 2;      // batches per worker; of a loader of threads: in all
  bool pin_memory = false;
  double cache_bytes = 0;   // kept in memory on purpose
  double device_bytes = 0;  // counts here only where memory is unified
};

struct HostLimits {
  double memory_bytes = 0;  // 0: not known
  std::string limited_by = {};
  double shm_bytes = 0;  // /dev/shm, through which worker processes hand batches over; 0: not known
  bool unified = false;  // device memory is host memory
  double dataset_bytes = 0;
};

struct HostLine {
  std::string what, how;
  double bytes = 0;
};

struct HostBudget {
  std::vector<HostLine> lines = {};
  double total_bytes = 0, limit_bytes = 0;
  double shm_bytes = 0, shm_limit_bytes = 0;
  bool unified = false;
  std::optional<double> page_cache_bytes = {};  // what remains for it
  std::optional<bool> dataset_fits_cache = {};  // later epochs need no disk
  std::optional<double> full_after_s = {};      // growing workers reach the limit

  bool fits() const noexcept { return limit_bytes <= 0 || total_bytes <= limit_bytes; }
  bool shm_fits() const noexcept { return shm_limit_bytes <= 0 || shm_bytes <= shm_limit_bytes; }
};

HostBudget host_budget(const HostUse& use, const HostLimits& limits);
std::string bytes_text(double bytes);  // "12.4 GiB"; an estimate below 0 is 0

}  // namespace stoker::plan
