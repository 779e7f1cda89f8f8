// What `stoker plan` plans from: runs of `stoker tune`, tables of others, and cases described in a file. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/plan/device_memory.h"
#include "stoker/plan/duration.h"
#include "stoker/plan/host_memory.h"
#include "stoker/plan/what_if.h"
#include "stoker/tune/choose.h"
#include "stoker/tune/results_csv.h"

namespace stoker::cli {

struct EpochFigure {
  std::uint64_t epoch = 0;
  double per_s = 0;
};

// One run: rows of one model or job on one machine, and what else is known of it.
struct PlanRun {
  std::string name, source;
  std::string kind;  // "run" (a folder of ours), "csv", "case" or "ledger"
  std::vector<tune::Row> rows;
  std::vector<plan::Configuration> configurations;  // one per point, in the order of the rows
  tune::Choice choice;                              // its best and chosen are configurations here
  std::string model;                                // "vit:..."; empty: not known
  std::optional<plan::Vit> vit;
  plan::Training training;
  std::map<std::string, std::string> current;  // as it runs now; empty: as chosen
  std::optional<plan::Stages> stages;
  double seen_per_s = 0;  // the rate that the ledger was measured at; 0: not known
  plan::Setting setting;
  plan::HostUse host;
  plan::HostLimits limits;
  double device_limit_bytes = 0, device_now_bytes = 0;
  double cores = 0;     // of the machine that ran it
  bool shuffle = true;  // of our loader
  std::vector<EpochFigure> epochs;
  std::optional<std::pair<double, double>> target_per_s;  // what the accelerator takes
  std::string address;                                    // our loader's; empty: a command, or not known
  std::string function, data;                             // module:function that was tuned, and its data
  std::vector<std::string> flags;                         // of `stoker load`
  std::vector<std::string> command;                       // that was tuned, with {knob}, or measured
  std::string place;                                      // where it makes its loader, "train.py:41"; empty: not known
  std::vector<std::string> notes;
};

struct PlanInput {
  plan::Job job;
  std::optional<double> effective_batch;
  std::vector<PlanRun> runs;
};

// A folder of `stoker tune`, or a results.csv. Throws Error.
PlanRun read_run(const std::string& path, const tune::ColumnMap& columns);
// A file of schema stoker.case/1: its keys are in docs/planning.md. Throws Error that names the key.
PlanInput read_case(const std::string& path);
// Distinct points with all their rates, and the choice among those with that effective batch. Refuses absurd figures by
// their row. Throws Error(corrupt).
void settle_rows(PlanRun& run, std::optional<double> effective_batch);
// A ledger alone, as a run of one row.
PlanRun run_of_ledger(const std::string& file);
// The ledger in what `stoker load --bench-steps N --json` or `stoker measure --json` printed.
void read_ledger(const Json& json, const std::string& file, PlanRun& run);

}  // namespace stoker::cli
