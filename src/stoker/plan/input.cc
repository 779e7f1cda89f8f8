#include "stoker/plan/input.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/json.h"
#include "stoker/tune/verdict.h"
namespace stoker::plan {
namespace {

constexpr double kFastest = 1e9;   // samples per second: beyond is a mistake of units
constexpr double kLargest = 1e15;  // bytes
constexpr double kLongest = 1e9;   // milliseconds of a step

// Steady-state rates of blocks: corrected for queued batches, as the row's own rate is.
std::vector<double> rates_of(const PlanRun& run, std::uint64_t trial) {
  std::vector<double> rates;
  const auto found = run.blocks.find(trial);
  if (found == run.blocks.end()) return rates;
  for (const tune::Block& block : found->second) {
    if (block.seconds > 0 && block.steps > 0) rates.push_back(tune::steady_samples(block) / block.seconds);
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
  const Configuration& chosen = run.configurations[*run.choice.chosen];
  const auto number = [](const Configuration& one, const char* knob) {
    const auto found = one.knobs.find(knob);
    return found == one.knobs.end() ? std::optional<double>() : tune::number_of(found->second);
  };
  const std::optional<double> batch = number(chosen, "batch_size"), workers = number(chosen, "num_workers");
  if (!batch || !workers || *batch <= 0) return;
  Stages stages{.batch_size = *batch, .workers = *workers, .cores = run.cores, .fetch_in_workers = true};
  double slowest = 0;
  for (const Configuration& one : run.configurations) {
    const std::optional<double> count = number(one, "num_workers");
    const std::optional<meter::Bound> bound = tune::parse_bound(one.verdict);
    if (!one.ok() || !count || *count < 1 || (bound != meter::Bound::prep && bound != meter::Bound::fetch)) continue;
    slowest = std::max(slowest, *count / spread_of(one.rates).p50);
  }
  if (slowest <= 0) return;
  stages.prep_s = slowest;
  if (chosen.compute_ms) stages.compute_s = *chosen.compute_ms * 1e-3 / *batch;
  run.stages = stages;
}

void take_config(const tune::RunConfig& config, PlanRun& run) {
  run.data = config.target.address;
  run.function = config.target.function;
  if (run.function.empty()) run.address = run.data;
  run.flags = config.target.passed;
  run.command = config.target.command;
  run.shuffle = config.shuffle.value_or(true);
  if (config.environment) {
    run.cores = config.environment->cores.value_or(0);
    run.limits.memory_bytes = static_cast<double>(config.environment->memory_bytes.value_or(0));
    run.limits.limited_by = "memory of the machine that ran it";
  }
}

void take_data(const tune::RecordedData& data, Setting& setting) {
  setting.is_file_per_sample = data.is_file_per_sample;
  setting.decodes = data.decodes;
  setting.decodes_jpeg = data.decodes_jpeg;
  setting.sample_bytes = data.sample_bytes;
}

}  // namespace

void settle_rows(PlanRun& run, std::optional<double> effective_batch) {
  std::map<tune::Point, std::size_t> numbers;
  std::vector<tune::Row> candidates;
  for (const tune::Row& row : run.rows) {
    check(run, row);
    if (!effective_batch || has_batch(row.knobs, *effective_batch)) candidates.push_back(row);
    const auto [at, is_new] = numbers.emplace(row.knobs, run.configurations.size());
    if (is_new) {
      Configuration fresh;
      fresh.knobs = {row.knobs.begin(), row.knobs.end()};
      run.configurations.push_back(std::move(fresh));
    }
    Configuration& one = run.configurations[at->second];
    if (!row.ok()) {
      if (one.rates.empty()) one.status = row.status, one.error = row.error;
      continue;
    }
    one.status = tune::Status::ok;
    const std::vector<double> blocks = rates_of(run, row.trial);
    Rate rate = rate_of_interval(*row.images_per_s, row.ci_low, row.ci_high);
    if (blocks.size() >= 4) {
      rate = rate_of_blocks(blocks);
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
                format_text("leave {} out, or tune with it: `stoker tune --effective-batch {:g}`",
                            option("effective_batch"), *effective_batch));
  }
  run.choice = tune::choose(candidates);
  for (std::optional<std::size_t>* index : {&run.choice.best, &run.choice.chosen}) {
    if (*index) *index = numbers.at(candidates[**index].knobs);
  }
  const tune::Choice of_all = tune::choose(run.rows);
  run.choice.points = of_all.points, run.choice.ok = of_all.ok, run.choice.failures = of_all.failures;
  if (run.choice.ok == 1 && run.configurations.size() == 1 && run.kind != PlanSource::given) {
    run.notes.emplace_back("only one configuration was measured, so there is nothing to compare it with");
  }
  stages_of_rows(run);
}

PlanRun run_of(tune::RecordedRun recorded) {
  PlanRun run;
  run.source = recorded.place;
  run.kind = recorded.is_folder ? PlanSource::run : PlanSource::csv;
  std::filesystem::path clean = std::filesystem::path(recorded.place).lexically_normal();
  if (clean.filename().empty()) clean = clean.parent_path();
  run.name = recorded.is_folder ? clean.filename().string() : clean.stem().string();
  if (recorded.config) take_config(*recorded.config, run);
  if (recorded.rows.empty())
    throw Error(ErrorKind::corrupt, fmt::format("cannot plan from `{}`: it has no row", recorded.rows_file()));
  run.rows = std::move(recorded.rows);
  run.blocks = std::move(recorded.blocks);
  run.notes = std::move(recorded.notes);
  if (recorded.data) take_data(*recorded.data, run.setting);
  return run;
}

PlanRun run_of_rate(double per_s) {
  PlanRun run;
  run.name = "one node";
  run.source = "the rate that was given";
  run.kind = PlanSource::given;
  run.setting.access = Access::remote;
  run.rows.push_back({.trial = 1, .images_per_s = per_s});
  return run;
}

void limit_by_disk(PlanRun& run) {
  const Setting& setting = run.setting;
  const bool is_kept = setting.dataset_bytes > 0 && setting.dataset_bytes < 0.7 * setting.memory_bytes;
  if (run.stages && setting.disk_bytes_per_s > 0 && setting.sample_bytes > 0 && !setting.warm && !is_kept &&
      run.stages->storage_per_s <= 0) {
    run.stages->storage_per_s = setting.disk_bytes_per_s / setting.sample_bytes;
  }
}

std::string_view name(PlanSource source) noexcept {
  constexpr std::array<std::string_view, 5> kNames = {"run", "csv", "case", "ledger", "given"};
  return kNames[static_cast<std::size_t>(source)];
}

}  // namespace stoker::plan
