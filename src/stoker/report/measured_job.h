// A job that `stoker measure --out` measured: what its measure.json and steps.csv say (report/measure_json.h reads
// them). Plain values; from any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "stoker/base/json_facts.h"
#include "stoker/report/report.h"

namespace stoker::report {

// What one step took, on average.
struct StageTimes {
  double compute_ms = 0, h2d_ms = 0, fetch_ms = 0, prep_ms = 0, handoff_ms = 0;
};

struct MeasuredVerdict {
  std::string bound;  // "fetch_bound"
  Figure share = {};  // of the time, 0 to 1
  std::optional<double> gain = {};
};

struct MeasuredEpoch {
  std::size_t epoch = 0;
  StageTimes times = {};
};

// The loader that the answer is about.
struct MeasuredLoader {
  std::string name = {}, file = {};
  std::size_t line = 0;
  std::vector<Fact> settings = {};
  std::optional<double> samples_per_s = {};  // corrected for batches that were queued beforehand
  std::optional<double> batch_bytes = {};
  std::string torch = {}, device = {};
  std::vector<MeasuredEpoch> epochs = {};
};

struct MeasuredAccelerator {
  std::string name;
  std::optional<double> busy = {}, memory_used_bytes = {}, memory_total_bytes = {};
};

// None, or empty: not known.
struct MeasuredHost {
  std::optional<double> cores = {}, cores_used = {};
  std::optional<double> memory_limit_bytes = {}, memory_peak_bytes = {};
  std::optional<double> disk_bytes_per_s = {}, page_cache_share = {}, network_bytes_per_s = {};
  std::optional<double> cpu_pressure = {}, io_pressure = {}, memory_pressure = {};
  std::string data_file_system = {};
  std::optional<std::vector<MeasuredAccelerator>> accelerators = {};
};

struct MeasuredStep {
  double asked_s = 0, step_s = 0, compute_s = 0, ready = 0;
};

// One process of the job: its training loader that waits most, or of a job that trains nothing, its loader that does.
struct MeasuredRank {
  std::size_t rank = 0, world_size = 1, steps = 0;
  double step_ms = 0;
  StageTimes times = {};
  double wait_share = 0;  // of the time
  std::string bound = {};
  std::optional<double> samples_per_s = {};
};

struct MeasuredJob {
  std::string place;  // the folder, as commands name it
  std::vector<std::string> command = {};
  std::string headline = {};
  double seconds = 0;  // 0: not known
  int exit_code = 0;
  std::optional<MeasuredVerdict> verdict = {};
  std::size_t steps = 0;
  double step_ms = 0;
  StageTimes times = {};  // of all steps
  std::optional<MeasuredLoader> loader = {};
  std::optional<MeasuredHost> host = {};
  std::vector<std::string> why = {}, notes = {}, advice = {};
  std::vector<MeasuredRank> ranks = {};     // by number
  std::vector<MeasuredStep> training = {};  // of the first rank and loader of steps.csv
  std::vector<std::string> files = {};      // that the folder holds, to be linked
};

}  // namespace stoker::report
