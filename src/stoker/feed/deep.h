// `stoker measure --deep` of our own loader: the same samples with an emulated step, in parts and whole, so that the
// ledger can be checked by difference (measure/deep.h). One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "stoker/dataset/dataset.h"
#include "stoker/loader/options.h"
#include "stoker/measure/deep.h"

namespace stoker::feed {

struct DeepOptions {
  std::chrono::nanoseconds step{0};  // of the emulated accelerator
  std::uint64_t steps = 0;           // of each run; 0: as many as three seconds hold
  std::function<bool()> interrupted = {};
  std::function<void(const std::string& what, std::uint64_t total)> begun =
      {};  // the next part begins, of `total` items
  // Of that part; a rate below 0 is not known.
  std::function<void(std::uint64_t done, const char* unit, double per_second)> progress = {};
};

// Each run sees the same samples in the same order: the first steps of epoch 0. Drops the data's files from the page
// cache in between. Throws what the loader throws; Error(unavailable) where it was interrupted.
measure::DeepRuns deep_runs(const dataset::DatasetPtr& data, const loader::LoaderOptions& loading,
                            const DeepOptions& options);

}  // namespace stoker::feed
