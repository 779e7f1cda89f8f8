// What another architecture would give, predicted from the measured stages (meter/stages.h). Pure arithmetic; from
// any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/meter/stages.h"

namespace stoker::plan {

// How the bytes are read.
enum class Access : std::uint8_t { buffered, direct, mmap, ram, remote };
std::string_view name(Access access) noexcept;

using meter::Limit;
using meter::predict;
using meter::Predicted;
using meter::Stages;
using meter::take_out_rivals;

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
  bool decodes_jpeg = false;               // decode=fast is for them alone
  bool is_ours = true;                     // measured with our own loader: it has storage= and decode=
  bool is_random = false;                  // its transforms draw in every epoch
  std::optional<double> local_per_s = {};  // fetch from a local disk, where the data is remote
};

// What a prediction rests on.
enum class Evidence : std::uint8_t { model, ratio, measured };
std::string_view name(Evidence evidence) noexcept;

enum class Change : std::uint8_t {
  knob,          // `knob` = `value`, of the job or of our loader
  pack_raw,      // a pack of prepared samples
  pack_encoded,  // a pack of the files as they are
  local_copy,
  cache,
  faster_decode,  // of our loader: decode=fast
  faster_prep,    // any cheaper preparation
  accelerator,
  ranks,
  cores,
};

struct WhatIf {
  std::string name = {};  // "num_workers=4", "storage=ram", "pack raw", ...: for people
  Change kind = Change::knob;
  std::string knob = {}, value = {};  // of Change::knob
  std::string change = {};            // a sentence's worth of what it is
  Stages stages = {};
  Predicted predicted = {};
  double gain = 1;        // to the prediction for what is now
  double most_bytes = 0;  // host memory that it needs beyond what is used now
  Evidence evidence = Evidence::model;
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

// Puts a prediction on the measured rate `base_per_s`, so that every table has the same base: the rate becomes the base
// times the gain. A step is known exactly, so no rate exceeds what the step allows, and a new step that is the limit
// sets the rate alone. The gain follows.
void set_base(WhatIf& what, double base_per_s);

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
