// What is planned from: runs of `stoker tune`, tables of others, a ledger, and cases described in a file. Plain values;
// from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stoker/plan/device_memory.h"
#include "stoker/plan/duration.h"
#include "stoker/plan/host_memory.h"
#include "stoker/plan/prices.h"
#include "stoker/plan/what_if.h"
#include "stoker/tune/choose.h"
#include "stoker/tune/recorded_run.h"

namespace stoker::plan {

struct EpochFigure {
  std::uint64_t epoch = 0;
  double per_s = 0;
};

// Where the figures of a run come from.
enum class PlanSource : std::uint8_t {
  run,        // a folder of `stoker tune`
  csv,        // a table of rows
  case_file,  // a description in JSON
  ledger,     // what `stoker load` or `stoker measure` printed
  given,      // a rate, and nothing else
};
std::string_view name(PlanSource source) noexcept;  // "run", "csv", "case", "ledger", "given"

// One run: rows of one model or job on one machine, and what else is known of it.
struct PlanRun {
  std::string name, source;
  PlanSource kind = PlanSource::csv;
  std::vector<tune::Row> rows;
  std::map<std::uint64_t, std::vector<tune::Block>> blocks;  // of its trials, where they were kept
  std::vector<Configuration> configurations;                 // one per point, in the order of the rows
  tune::Choice choice;                                       // its best and chosen are configurations here
  std::string model;  // "vit:...", "dino:...", or one to trace, as "torchvision:resnet50,img=224"; empty: not known
  std::optional<Vit> vit;
  std::optional<TracedModel> traced;  // any other model
  std::optional<double> img_size;     // of the images, where the model or the case tells it
  Training training;
  std::map<std::string, std::string> current;  // as it runs now; empty: as chosen
  std::optional<Stages> stages;
  std::optional<double> start_share;  // of the time: starting workers for each epoch
  double seen_per_s = 0;              // the rate that the ledger was measured at; 0: not known
  Setting setting;
  HostUse host;
  HostLimits limits;
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
  std::vector<Text> notes;
};

struct PlanInput {
  Job job;
  std::optional<double> effective_batch;
  std::optional<double> learning_rate;  // that the job has now
  std::optional<StorePrices> prices;    // of the store that the data lies in
  std::vector<PlanRun> runs;
};

// What a folder of `stoker tune`, or a table of others, says of a run. Throws Error(corrupt) where it has no row.
PlanRun run_of(tune::RecordedRun recorded);
// A node with a stated rate of `per_s` samples a second.
PlanRun run_of_rate(double per_s);
// Distinct points with all their rates, and the choice among those with that effective batch. Refuses absurd figures by
// their row. Throws Error(corrupt).
void settle_rows(PlanRun& run, std::optional<double> effective_batch);
// Data that the page cache does not hold, or only after the first epoch, comes from the disk: its rate limits the
// storage of the ledger.
void limit_by_disk(PlanRun& run);

}  // namespace stoker::plan
