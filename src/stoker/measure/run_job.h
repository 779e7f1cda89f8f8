// A training job that runs as the user started it, with settings of its DataLoaders, or their input path, put in from
// outside. One thread; signals are passed on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stoker/base/json.h"

namespace stoker::measure {

struct RunJobOptions {
  std::vector<std::string> command = {};
  bool supply = false;        // Stoker feeds the DataLoaders that it understands
  std::string settings = {};  // for the hook: {"loaders": [...]}; empty: none
  bool quiet = false;         // the job says nothing about its DataLoaders
};

// What became of one DataLoader.
struct SuppliedLoader {
  int pid = 0;
  std::string file, name;  // where it was made; empty: not known
  std::uint64_t line = 0;
  std::optional<std::uint64_t> rank;
  bool replaced = false;
  std::string why;              // it was not
  std::uint64_t samples = 0;    // that Stoker has given
  double samples_per_s = 0;     // over its running time
  std::optional<double> gain;   // time of the job's own code for a sample, over that of a Stoker worker
  std::uint64_t by_python = 0;  // samples that the job's own code made, since Stoker could not

  std::string text() const;  // "train.py:31: replaced, ...", one line
};

struct RanJob {
  int code = 0;  // of the child, as a shell gives it
  std::vector<SuppliedLoader> loaders;
};

// The files of the hook go to a folder below TMPDIR (or /tmp) that is removed afterwards. Throws Error where the
// command cannot be run.
RanJob run_job(const RunJobOptions& options);

// The loaders in lines of JSON as the job writes them; the last line of a loader counts. Ill-formed lines are passed
// over.
std::vector<SuppliedLoader> supplied_loaders(const std::vector<std::string>& lines);
Json to_json(const SuppliedLoader& loader);

}  // namespace stoker::measure
