// What another architecture would give, from one measured ledger: each stage has a rate, and the slowest one is the
// rate of the whole. Pure arithmetic; from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::plan {

// How the bytes are had.
enum class Access : std::uint8_t { buffered, direct, mmap, ram, remote };
std::string_view name(Access access) noexcept;

// One process that loads and trains, as measured. Times are seconds per sample of one thread (or worker process) that
// has a core whenever it wants one; `rivals` says how far that is from the truth.
struct Stages {
  double batch_size = 1;
  double workers = 1;  // 0: the consumer does prep itself
  double io_threads = 1;
  double cores = 0;   // 0: not known
  double rivals = 0;  // other programs on these cores, each as good as ours at getting them; 0: a quiet machine
  double ranks = 1;   // such processes on this machine
  bool fetch_in_workers = false;  // as in a torch DataLoader: a worker reads and prepares
  double fetch_s = 0;             // 0: nothing to speak of
  double prep_s = 0;
  double handoff_s = 0;      // of the consumer
  double compute_s = 0;      // of the accelerator; 0: none
  double cpu_s = 0;          // of all threads together; 0: not known, then prep_s
  double storage_per_s = 0;  // samples that the storage can give, to all ranks and nodes together; 0: no limit was seen
};

struct Predicted {
  double per_s = 0;        // of all ranks of this machine together
  std::string limit = {};  // "fetch", "prep", "hand-off", "compute", "cores", "storage"
  double fetch_per_s = 0, prep_per_s = 0, handoff_per_s = 0, compute_per_s = 0, cores_per_s = 0,
         storage_per_s = 0;  // 0: no limit
};
Predicted predict(const Stages& stages);

// On a crowded machine the slowest stage waits for cores, and only that: its time is brought down to what the CPU time
// of all (`cpu_s`) leaves for it, and the rest is the rivals'. `used_cores` is what the process had.
void take_out_rivals(Stages& stages, double used_cores);

// The machine and the data, for changes that a ledger alone cannot tell. 0: not known.
struct Setting {
  double sample_bytes = 0;   // encoded, on disk
  double decoded_bytes = 0;  // of one sample in the batch
  double dataset_bytes = 0;
  double dataset_samples = 0;
  double memory_bytes = 0;          // that could hold data
  double memory_bytes_per_s = 8e9;  // copying, one core
  double disk_bytes_per_s = 0;      // sequential
  Access access = Access::buffered;
  bool warm = true;  // measured with the data in the page cache
  bool is_file_per_sample = true;
  bool decodes = true;
  bool is_random = false;                  // its transforms draw anew every epoch
  std::optional<double> local_per_s = {};  // fetch from a local disk, where the data is remote
};

struct WhatIf {
  std::string name = {};    // "num_workers=4", "storage=ram", "pack raw", ...
  std::string change = {};  // a sentence's worth of what it is
  Stages stages = {};
  Predicted predicted = {};
  double gain = 1;                      // to the prediction for what is now
  double most_bytes = 0;                // host memory that it needs beyond what is used now
  std::string evidence = {};            // "measured", "model", "ratio"
  std::string why = {};                 // what limits it then
  std::vector<std::string> flags = {};  // of `stoker load`; empty: cannot be run here as it is
  bool needs_pack = false;              // verified on a pack of the data
  bool feasible = true;                 // false: `why` says what stands against it
};

// Changed one at a time. `now` is measured.
WhatIf with_workers(const Stages& now, double workers);
WhatIf with_storage(const Stages& now, const Setting& setting, Access access);
WhatIf with_pack(const Stages& now, const Setting& setting, bool raw);
WhatIf with_local_copy(const Stages& now, const Setting& setting);
WhatIf with_cache(const Stages& now, const Setting& setting, double cache_bytes);
WhatIf with_faster_prep(const Stages& now, double times, std::string_view how);
WhatIf with_compute(const Stages& now, double compute_s);
WhatIf with_ranks(const Stages& now, double ranks);
WhatIf with_batch(const Stages& now, double batch_size);
WhatIf with_cores(const Stages& now, double cores);
// By name: num_workers=4, storage=ram, pack=raw, local_copy, cache=10GB, prep=2 (times as fast), step_ms=20, ranks=2,
// batch_size=128, cores=8. Throws Error(usage).
WhatIf asked(const Stages& now, const Setting& setting, std::string_view text);
// Those that make sense for the setting, best first.
std::vector<WhatIf> what_ifs(const Stages& now, const Setting& setting);

// Nodes that share one storage: from which number on it is the limit.
struct ScaleOut {
  double nodes = 0;
  double per_s = 0;  // of all
  double share = 1;  // of what the nodes could do alone
};
std::vector<ScaleOut> scale_out(const Stages& one_node, std::span<const double> nodes);
std::optional<double> saturating_nodes(const Stages& one_node);  // none: no storage limit is known

// Epoch 0 is slow and later ones are not: what the difference is, and what is left afterwards.
struct EpochSplit {
  double images = 0;
  double first_s = 0, later_s = 0;  // per epoch
  double fetch_stall_s = 0;         // in epoch 0 only
  double later_per_worker = 0;      // samples per second
  double local_copy_first = 1;      // gain of epoch 0
  double local_copy_later = 1;      // gain of a later epoch
};
EpochSplit split_epochs(double images, double first_per_s, double later_per_s, double workers);

}  // namespace stoker::plan
