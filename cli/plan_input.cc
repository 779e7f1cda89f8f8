#include "plan_input.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/dataset/dataset.h"
#include "stoker/dataset/pack_format.h"
#include "stoker/tune/blocks.h"

#include "files.h"

namespace stoker::cli {
namespace {

constexpr double kFastest = 1e9;   // samples per second: beyond is a mistake of units
constexpr double kLargest = 1e15;  // bytes
constexpr double kLongest = 1e9;   // milliseconds of a step

// The rates of the blocks of a trial, corrected for batches that lay ready, as the row's own rate is.
std::vector<double> blocks_of(const std::string& file) {
  std::vector<double> rates;
  if (!exists(file)) return rates;
  std::istringstream lines(read_text(file));
  for (std::string line; std::getline(lines, line);) {
    const std::optional<tune::Block> block = tune::block_of(Json::parse_or_null(line));
    if (!block || block->is_warmup || block->seconds <= 0 || block->steps <= 0) continue;
    rates.push_back(tune::steady_samples(*block) / block->seconds);
  }
  return rates;
}

[[noreturn]] void refuse(const PlanRun& run, const tune::Row& row, const std::string& why) {
  throw Error(ErrorKind::corrupt, fmt::format("cannot plan from `{}`: row {}: {}", run.source, row.trial, why),
              "correct the row or leave it out");
}

void check(const PlanRun& run, const tune::Row& row) {
  if (row.status != tune::Status::ok) return;
  const auto between = [&](const char* what, std::optional<double> value, double most) {
    if (!value) return;
    if (!std::isfinite(*value) || *value < 0 || *value > most) {
      refuse(run, row, fmt::format("{} is {:g}, which nothing reaches", what, *value));
    }
  };
  between("images_per_s", row.images_per_s, kFastest);
  if (row.images_per_s && *row.images_per_s <= 0) refuse(run, row, "images_per_s is 0, yet its status is ok");
  between("step_ms", row.step_ms, kLongest);
  between("compute_ms", row.compute_ms, kLongest);
  const auto bytes = [](std::optional<std::uint64_t> value) {
    return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
  };
  between("host_peak_bytes", bytes(row.host_peak_bytes), kLargest);
  between("device_allocated_bytes", bytes(row.device_allocated_bytes), kLargest);
  if (row.ci_low && row.ci_high && row.images_per_s &&
      (*row.ci_low > *row.images_per_s || *row.ci_high < *row.images_per_s)) {
    refuse(run, row,
           fmt::format("images_per_s is {:g}, outside its own interval {:g} to {:g}", *row.images_per_s, *row.ci_low,
                       *row.ci_high));
  }
}

bool has_batch(const tune::Point& point, double effective) {
  const double batch = tune::number_of(point, "batch_size").value_or(0);
  return batch * tune::number_of(point, "accumulate_steps").value_or(1) == effective;
}

template <typename T>
void take_larger(std::optional<T>& into, const std::optional<T>& from) {
  if (from && (!into || *into < *from)) into = from;
}

// Without a ledger the rows themselves say something: what the step takes, and what a worker makes where the loader
// was the limit.
void stages_of_rows(PlanRun& run) {
  if (run.stages || !run.choice.chosen) return;
  const plan::Configuration& chosen = run.configurations[*run.choice.chosen];
  const auto number = [](const plan::Configuration& one, const char* knob) {
    const auto found = one.knobs.find(knob);
    return found == one.knobs.end() ? std::optional<double>() : tune::number_of(found->second);
  };
  const std::optional<double> batch = number(chosen, "batch_size"), workers = number(chosen, "num_workers");
  if (!batch || !workers || *batch <= 0) return;
  plan::Stages stages{.batch_size = *batch, .workers = *workers, .cores = run.cores, .fetch_in_workers = true};
  double slowest = 0;
  for (const plan::Configuration& one : run.configurations) {
    const std::optional<double> count = number(one, "num_workers");
    if (!one.ok() || !count || *count < 1 || one.verdict.empty() || one.verdict == "compute_bound") continue;
    if (one.verdict != "prep_bound" && one.verdict != "fetch_bound") continue;
    slowest = std::max(slowest, *count / plan::spread_of(one.rates).p50);
  }
  if (slowest <= 0) return;
  stages.prep_s = slowest;
  if (chosen.compute_ms) stages.compute_s = *chosen.compute_ms * 1e-3 / *batch;
  run.stages = stages;
}

// What the data is, where that is known at a glance.
void look_at_data(PlanRun& run) {
  const bool is_pack = exists(run.address + "/" + std::string(dataset::kPackJson));
  const bool is_array = run.address.ends_with(".npy");
  if (run.address.ends_with(".tar")) run.setting.is_file_per_sample = false;
  if ((!is_pack && !is_array) || !exists(run.address)) return;
  try {
    const dataset::DatasetPtr data = dataset::open(run.address);
    run.setting.is_file_per_sample = false;
    run.setting.decodes = !data->facts().array.has_value();
  } catch (const Error& error) {
    run.notes.push_back(fmt::format("the data of the run has changed since: {}", error.message()));
  }
}

}  // namespace

void settle_rows(PlanRun& run, std::optional<double> effective_batch) {
  std::map<tune::Point, std::size_t> numbers;
  std::vector<tune::Row> candidates;
  const std::filesystem::path folder = run.kind == "run" ? std::filesystem::path(run.source) : "";
  for (const tune::Row& row : run.rows) {
    check(run, row);
    if (!effective_batch || has_batch(row.knobs, *effective_batch)) candidates.push_back(row);
    const auto [at, is_new] = numbers.emplace(row.knobs, run.configurations.size());
    if (is_new) {
      plan::Configuration fresh;
      fresh.knobs = {row.knobs.begin(), row.knobs.end()};
      run.configurations.push_back(std::move(fresh));
    }
    plan::Configuration& one = run.configurations[at->second];
    if (!row.ok()) {
      if (one.rates.empty()) one.status = name(row.status), one.error = row.error;
      continue;
    }
    one.status = "ok";
    const std::vector<double> blocks =
        folder.empty() ? std::vector<double>()
                       : blocks_of((folder / fmt::format("trials/{:04d}/steps.jsonl", row.trial)).string());
    plan::Rate rate = plan::rate_of_interval(*row.images_per_s, row.ci_low, row.ci_high);
    if (blocks.size() >= 4) {
      rate = plan::rate_of_blocks(blocks);
      rate.per_s = *row.images_per_s;  // weighs blocks by their time
    }
    one.rates.push_back(rate);
    one.step_ms = row.step_ms, one.data_ms = row.data_ms, one.compute_ms = row.compute_ms;
    one.verdict = row.verdict.empty() ? row.bound : row.verdict;
    take_larger(one.host_peak_bytes, row.host_peak_bytes);
    take_larger(one.device_allocated_bytes, row.device_allocated_bytes);
    take_larger(one.device_reserved_bytes, row.device_reserved_bytes);
  }
  if (candidates.empty() && effective_batch && !run.rows.empty()) {
    throw Error(ErrorKind::usage,
                fmt::format("no row of `{}` has batch_size x accumulate_steps = {:g}", run.source, *effective_batch),
                "leave out the effective batch, or tune with it: stoker tune --effective-batch");
  }
  run.choice = tune::choose(candidates);
  for (std::optional<std::size_t>* index : {&run.choice.best, &run.choice.chosen}) {
    if (*index) *index = numbers.at(candidates[**index].knobs);
  }
  const tune::Choice of_all = tune::choose(run.rows);
  run.choice.points = of_all.points, run.choice.ok = of_all.ok, run.choice.failures = of_all.failures;
  if (run.choice.ok == 1 && run.configurations.size() == 1) {
    run.notes.emplace_back("only one configuration was measured, so there is nothing to compare it with");
  }
  stages_of_rows(run);
}

PlanRun read_run(const std::string& path, const tune::ColumnMap& columns) {
  PlanRun run;
  run.source = path;
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  std::filesystem::path clean = std::filesystem::path(path).lexically_normal();
  if (clean.filename().empty()) clean = clean.parent_path();
  run.name = is_folder ? clean.filename().string() : clean.stem().string();
  std::string file = path;
  if (is_folder) {
    file = path + "/results.csv";
    if (!exists(file)) {
      throw Error(ErrorKind::not_found, fmt::format("cannot plan from `{}`: it has no results.csv", path),
                  "give the folder that `stoker tune` named, or a results.csv");
    }
    run.kind = "run";
    const std::string config_file = path + "/config.json";
    if (exists(config_file)) {
      const auto config = Json::parse_or_null(read_text(config_file));
      if (!config.is_object()) throw Error(ErrorKind::corrupt, fmt::format("`{}` is no JSON object", config_file));
      if (config.contains("source") && config["source"].is_string()) run.data = config["source"].get<std::string>();
      if (config.contains("function") && config["function"].is_string()) {
        run.function = config["function"].get<std::string>();
      } else {
        run.address = run.data;
      }
      if (config.contains("flags") && config["flags"].is_array())
        run.flags = config["flags"].get<std::vector<std::string>>();
      if (config.contains("command") && config["command"].is_array())
        run.command = config["command"].get<std::vector<std::string>>();
      run.shuffle = config.value("shuffle", true);
      look_at_data(run);
      if (config.contains("environment") && config["environment"].is_object()) {
        run.cores = config["environment"].value("cores", 0.0);
        run.limits.memory_bytes = config["environment"].value("memory_bytes", 0.0);
        run.limits.limited_by = "memory of the machine that ran it";
      }
    }
  } else {
    if (!exists(path))
      throw Error(ErrorKind::not_found, fmt::format("cannot open `{}`: No such file or directory", path));
    run.kind = "csv";
  }
  tune::Results results = tune::read_results(read_text(file), file, columns);
  run.rows = std::move(results.rows);
  run.notes.insert(run.notes.end(), results.notes.begin(), results.notes.end());
  if (run.rows.empty()) throw Error(ErrorKind::corrupt, fmt::format("cannot plan from `{}`: it has no row", file));
  return run;
}

}  // namespace stoker::cli
