// The plan: durations, memory, options and what-ifs of each run, and which run to take. Made once, rendered as text and
// JSON. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/plan/bundles.h"
#include "stoker/plan/fleet.h"
#include "stoker/plan/input.h"
#include "stoker/plan/options.h"

namespace stoker::plan {

struct PlannedConfiguration {
  Configuration measured;
  std::optional<RateSpread> rate = {};    // none: it failed
  std::optional<Duration> duration = {};  // none: it failed, or no job is known
  bool is_best = false, is_chosen = false;
};

struct DevicePlan {
  MemoryLine line;
  std::vector<Compared> points;  // of the rows with the same memory settings, and those that ran out
  double limit_bytes = 0;        // 0: not known
  std::optional<std::uint64_t> largest_batch;
  std::optional<double> parameters, forward_flops;  // of a model's description
  std::vector<MemoryPart> parts;                    // of the same; empty: not known
  double parts_batch = 0;                           // the batch that they are told for
};

struct VerifiedWhatIf {
  WhatIf what;
  bool closes = false;  // reaches what the accelerator takes
  std::optional<double> measured_per_s = {}, low = {}, high = {},
                        error = {};  // error: beyond the observed interval, as a share
  std::string not_run = {};          // why it was not measured here
  std::optional<double> gain = {};   // measured, over the present settings in the same rounds
  std::optional<double> noise = {};  // by how much runs of the same settings differed: too much to tell the gain
};

struct PlannedRun {
  PlanRun input;
  std::vector<PlannedConfiguration> configurations;
  std::optional<std::size_t> best, chosen;
  std::optional<DevicePlan> device;
  std::optional<HostBudget> host;
  std::vector<VerifiedWhatIf> what_ifs;
  std::optional<double> verified_per_s;  // of the present settings, measured in turn with the what-ifs
  std::vector<Option> options;
  std::vector<Bundle> bundles;  // of the options
  std::optional<EpochSplit> epochs;
  std::vector<ScaleOut> nodes;
  std::optional<double> saturating_nodes;
  std::vector<StoreCost> costs;  // none: no prices, or the size of the data is not known
  std::optional<Fleet> fleet;    // none: no nodes were asked for, or the size of the data is not known
  std::vector<Text> notes;

  const PlannedConfiguration* picked() const { return chosen ? &configurations[*chosen] : nullptr; }
};

struct PlanAnswer {
  Job job;
  bool has_job = false;
  std::optional<double> needed_per_s;
  std::optional<double> effective_batch, learning_rate;  // as asked
  std::optional<StorePrices> prices;
  std::vector<PlannedRun> runs;
  std::optional<std::size_t> chosen_run;  // the one to take
  std::string headline, pivot, next_command;
  std::vector<Text> notes;
  bool is_no = false;  // nothing ran, or nothing meets the budget
};

// Of PlanWishes::nodes. None: nothing is said, and what was measured counts.
struct FleetWishes {
  std::optional<double> node_per_s = {};  // samples of one node that has the data at hand
  std::optional<double> nic_bytes_per_s = {}, cache_bytes = {};
  FleetStore store = {};
};

struct PlanWishes {
  double margin = 0.08;            // of device memory, kept free
  std::vector<double> nodes = {};  // that share the storage
  FleetWishes fleet = {};
  std::vector<std::string> what_ifs = {};  // only these; none: those that make sense
};

// Days as people say them, in the unit that suits `of`: "14 days", "2.5 hours", "12 s".
struct TimeUnit {
  std::string_view name;
  double per_day;
};
TimeUnit time_unit(double of_days);
std::string in_unit(double days, const TimeUnit& unit);  // the number alone

PlanAnswer make_plan(PlanInput input, const PlanWishes& wishes);
// Again, after what-ifs were measured.
void finish_plan(PlanAnswer& answer);

}  // namespace stoker::plan
