// What a search was asked to do, and where it ran: the content of a run's config.json (tune/config_json.h reads and
// writes it). Plain values; from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/json_facts.h"
#include "stoker/dataset/narrowing.h"
#include "stoker/tune/environment.h"
#include "stoker/tune/knobs.h"
#include "stoker/tune/target.h"
#include "stoker/tune/trial.h"

namespace stoker::tune {

// The data set as it was when the run began: a run that is resumed must have the same.
struct DataFacts {
  std::uint64_t samples = 0;
  std::string fingerprint;
};

struct RunConfig {
  std::string schema = {};  // of a config.json that was read; empty: it says none
  Target target = {};
  std::vector<Knob> knobs = {};  // as the file has them; grid() checks them
  std::string index_csv = {};    // of others, who have no `source`
  dataset::Narrowing narrowing = {};
  std::optional<std::uint64_t> inflation_factor = {};
  std::optional<bool> shuffle = {};
  std::string search = {};           // "auto" or "grid"
  std::string steps_from = "auto";   // or "hook", "output", "reports"
  std::string rate_regex = {};       // empty: none
  std::string log_pattern = {};      // empty: none
  std::string effective_batch = {};  // a number; empty: none
  std::optional<std::uint64_t> warmup_steps = {}, bench_steps = {};
  std::string bench_time = {};  // "2s"; empty: none
  std::optional<Environment> environment = {};
  std::optional<DataFacts> data = {};  // none: only the job knows it
  // Every member of a file that was read, in words; the command, the flags and the grid are left out.
  std::vector<Fact> facts = {}, environment_facts = {};

  bool is_of_tune() const;  // `stoker tune` of any version wrote the file
  Grid grid() const;        // throws Error(usage)
  // Where the steps of a trial are seen: `steps_from`, or what suits the target. Throws Error(usage).
  StepsFrom where_steps_are() const;
  std::chrono::nanoseconds bench_duration() const;  // 0: none. Throws Error(usage)
};

// The command of one trial. Files of the trial go to `folder`. `program` is `stoker`, for our own loader.
std::vector<std::string> command_for(const RunConfig& config, const Point& point, const std::string& folder,
                                     const std::string& program);

// A search over the whole grid that stopped early: "3 of 12 points have a row", where `points` have one. Empty: nothing
// is missing, or nobody knows.
std::string unfinished_of(const RunConfig& config, std::size_t points);

}  // namespace stoker::tune
