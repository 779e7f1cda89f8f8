// What a plan only predicted, put to the test: our loader with each what-if's flags, as a trial of `stoker tune` runs
// it. The caller starts the processes; here is which to run, and what follows from them. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "stoker/plan/answer.h"
#include "stoker/tune/row.h"

namespace stoker::plan {

struct Tried {
  tune::Row row;
  std::string output = {};  // what it printed
};

struct TriedPack {
  std::string address = {};  // empty: it could not be made
  std::string error = {};    // why
};

struct VerifyOptions {
  std::uint64_t bench_steps = 40;
  std::uint64_t rounds = 2;  // each what-if is run so often, in turn
  // Runs `stoker` with these words to its end, as a trial.
  std::function<Tried(const std::vector<std::string>& words)> run = {};
  // Packs the data at `address`, for a try only; `change` is Change::pack_raw or Change::pack_encoded.
  std::function<TriedPack(const std::string& address, Change change)> pack = {};
  std::function<void(const std::string& what)> begun = {};
  std::function<bool()> interrupted = {};
};

// The words behind `stoker` that measure this run's present settings with further flags.
std::vector<std::string> load_words(const PlanRun& run, const std::string& address,
                                    const std::vector<std::string>& more, std::uint64_t bench_steps);
// Measures the ledger of the present settings. Throws Error.
void measure_ledger(PlanRun& run, const VerifyOptions& options);
// Fills in what was measured for each what-if that can run here, and says why for the others.
void verify(PlannedRun& run, const VerifyOptions& options);

}  // namespace stoker::plan
