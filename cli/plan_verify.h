// Runs what a plan only predicted: our loader with each what-if's flags, as a trial of `stoker tune` runs it. One
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plan_answer.h"

namespace stoker::cli {

struct VerifyOptions {
  std::uint64_t bench_steps = 40;
  std::uint64_t rounds = 2;  // each what-if is run so often, in turn
  std::function<void(const std::string& what)> begun;
  std::function<bool()> interrupted;
};

// The command that measures this run's chosen settings with further flags.
std::vector<std::string> load_command(const PlanRun& run, const std::string& address,
                                      const std::vector<std::string>& more, std::uint64_t bench_steps);
// Measures the ledger of the chosen settings. Throws Error.
void measure_ledger(PlanRun& run, const VerifyOptions& options);
// Fills in what was measured for each what-if that can run here, and says why for the others.
void verify(PlannedRun& run, const VerifyOptions& options);

}  // namespace stoker::cli
