// What a search needs before its first trial and says after its last: settings that are checked, limits, the options of
// each trial, notes. The functions that look at files or at the machine say so. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stoker/base/text.h"
#include "stoker/tune/choose.h"
#include "stoker/tune/run_config.h"
#include "stoker/tune/search.h"
#include "stoker/tune/trial.h"

namespace stoker::tune {

// What trials may take. It belongs to the machine, so a run that is resumed may have others.
struct RunLimits {
  std::uint64_t memory_bytes = 0;                                // of one trial's processes; 0: what the machine allows
  std::uint64_t device_memory_bytes = 0;                         // 0: no limit known
  std::chrono::nanoseconds deadline = std::chrono::minutes(10);  // of one trial; 0: none
};

// What would fail only after the search, or only in its first trial. Looks whether files exist. Throws Error.
void check_run(const RunConfig& config, const RunLimits& limits);

// Looks at the machine. Throws Error(usage).
SearchOptions search_options(const RunConfig& config, const RunLimits& limits);
// The search that the config names. Throws Error(usage).
std::unique_ptr<Search> make_search(const RunConfig& config, const SearchOptions& options);
// Writes the trial's copies of files to `folder`. `program` is `stoker`, for our own loader. Throws Error.
TrialOptions trial_options(const RunConfig& config, const RunLimits& limits, const Point& point,
                           const std::string& folder, const std::string& program);

// The machine and the job's Python. Runs that interpreter; throws Error(usage) where a function could not run in it.
Environment environment_of(const Target& target);

// How long a search may take, where earlier trials tell.
struct Forecast {
  std::vector<Point> points = {};
  std::uint64_t trials_at_most = 0;
  std::optional<double> seconds_each = {};
};
Forecast forecast(const SearchOptions& options, const Search& search, std::span<const Row> earlier);

// What to say before the first trial.
std::vector<Text> notes_before(const RunConfig& config, const Grid& grid);
// Notes beside the choice: a batch size that the user did not choose, noise, points that ran at one time and failed
// at another.
std::vector<Text> notes_after(const RunConfig& config, const Choice& choice, std::span<const Row> rows);

}  // namespace stoker::tune
