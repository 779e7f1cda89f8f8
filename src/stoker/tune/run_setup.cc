#include "stoker/tune/run_setup.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/units.h"
#include "stoker/os/cpu.h"
#include "stoker/os/memory.h"
#include "stoker/os/read_file.h"
#include "stoker/tune/blocks.h"
#include "stoker/tune/job_loader.h"
#include "stoker/tune/measured.h"
#include "stoker/tune/search_space.h"

namespace stoker::tune {
namespace {

constexpr std::size_t kMostUnsteady = 3;  // points that a note names

void require_file(const std::string& file) {
  if (!os::exists(file))
    throw Error(ErrorKind::not_found, fmt::format("cannot open `{}`: No such file or directory", file));
}

// Points that ran once and failed once. They are never chosen where others ran, so a note says why.
Text note_of_unsteady(std::span<const Row> rows) {
  std::string points;
  std::size_t count = 0;
  for (const Measured& one : measured(rows)) {
    if (one.ok.empty() || !one.has_failed) continue;
    if (++count <= kMostUnsteady) points += fmt::format("{}{}", count > 1 ? "; " : "", text(*one.point));
  }
  if (count == 0) return {};
  return fmt::format("{} ran at one time and failed at another, and {} not chosen: {}{}",
                     count == 1 ? "a point" : fmt::format("{} points", count), count == 1 ? "is" : "are", points,
                     count > kMostUnsteady ? "; ..." : "");
}

// Whether a pattern tells steps, and no samples.
bool counts_steps(const std::string& log_pattern) {
  const measure::LogPattern pattern(log_pattern);
  return !pattern.has("samples_per_s") && !pattern.has("images_per_s");
}

}  // namespace

void check_run(const RunConfig& config, const RunLimits& limits) {
  if (const auto time = config.bench_duration();
      time.count() > 0 && limits.deadline.count() > 0 && time >= limits.deadline) {
    throw Error(ErrorKind::usage,
                fmt::format("a trial that measures for {} cannot end within its deadline of {}", config.bench_time,
                            format_duration(limits.deadline)),
                format_text("give a longer {}, or a shorter {}", option("deadline"), option("bench_time")));
  }
  (void)config.where_steps_are();
  if (!config.rate_regex.empty() && !config.log_pattern.empty()) {
    throw Error(ErrorKind::usage,
                format_text("{} and {} exclude each other", option("rate_regex"), option("log_pattern")),
                "both say how to read the rate in what the job prints: give one");
  }
  (void)RateReader(config.rate_regex, 1, config.log_pattern);
  const std::string& address = config.target.address;
  if (!address.empty() && address.find('{') == std::string::npos && address.find("://") == std::string::npos)
    require_file(address);
  const std::string file = config.target.function.substr(0, config.target.function.rfind(':'));
  if (file.ends_with(".py")) require_file(file);
}

SearchOptions search_options(const RunConfig& config, const RunLimits& limits) {
  SearchOptions options;
  options.grid = config.grid();
  options.limits.cores = os::effective_cores().available;
  options.limits.host_bytes = limits.memory_bytes != 0 ? limits.memory_bytes : os::memory_limit().bytes;
  options.limits.device_bytes = limits.device_memory_bytes;
  if (!config.effective_batch.empty()) {
    options.effective_batch = number_of(config.effective_batch);
    if (!options.effective_batch) {
      throw Error(ErrorKind::usage,
                  format_text("`{}` is a number, not `{}`", option("effective_batch"), config.effective_batch));
    }
  }
  return options;
}

std::unique_ptr<Search> make_search(const RunConfig& config, const SearchOptions& options) {
  if (config.search == "grid") return grid_search(options);
  if (config.search == "auto") return auto_search(options);
  throw Error(ErrorKind::usage, format_text("`{}` is auto or grid, not `{}`", option("search"), config.search));
}

TrialOptions trial_options(const RunConfig& config, const RunLimits& limits, const Point& point,
                           const std::string& folder, const std::string& program) {
  TrialOptions trial;
  trial.command = command_for(config, point, folder, program);
  trial.steps_from = config.where_steps_are();
  if (const Target& target = config.target; !target.loader_knobs.empty())
    trial.environment["STOKER_SETTINGS"] = settings_json(target.loader, point, target.loader_knobs).dump();
  trial.with_hook = !config.target.function.empty();
  if (const auto& keys = config.target.source_keys; !keys.empty()) {
    trial.environment["STOKER_SOURCE"] = source_json(point, keys).dump();
    trial.source_keys = keys;
  }
  trial.rate_regex = config.rate_regex;
  trial.log_pattern = config.log_pattern;
  trial.batch_size = number_of(point, "batch_size").value_or(0);
  trial.warmup_steps = config.warmup_steps.value_or(trial.warmup_steps);
  trial.bench_steps = config.bench_steps.value_or(trial.bench_steps);
  trial.bench_time = config.bench_duration();
  trial.deadline = limits.deadline;
  trial.memory_limit = limits.memory_bytes != 0 ? limits.memory_bytes : os::memory_limit().bytes / 20 * 19;
  return trial;
}

Environment environment_of(const Target& target) {
  if (!target.function.empty()) {
    const PythonFacts facts = look_at_python(target.python);
    if (!facts.has_stoker) {
      throw Error(ErrorKind::usage,
                  fmt::format("cannot run `{}`: `{}` has no package `stoker`", target.function, target.python),
                  format_text("install it there with pip, or choose the interpreter that has it: {}",
                              option("python", ".venv/bin/python")));
    }
    return look_at_environment(&facts);
  }
  const std::string first = target.command.empty() ? "" : target.command.front();
  if (std::filesystem::path(first).filename().string().starts_with("python")) {
    try {
      const PythonFacts facts = look_at_python(first);
      return look_at_environment(&facts);
    } catch (const Error&) {
      // the trial will tell
    }
  }
  return look_at_environment(nullptr);
}

Forecast forecast(const SearchOptions& options, const Search& search, std::span<const Row> earlier) {
  Forecast forecast{.points = SearchSpace(options).points(), .trials_at_most = search.at_most()};
  double sum = 0;
  std::uint64_t count = 0;
  for (const Row& row : earlier) {
    if (row.trial_seconds) sum += *row.trial_seconds, ++count;
  }
  if (count > 0) forecast.seconds_each = sum / static_cast<double>(count);
  forecast.trials_at_most -= std::min(forecast.trials_at_most, count);
  return forecast;
}

std::vector<Text> notes_before(const RunConfig& config, const Grid& grid) {
  std::vector<Text> notes = notes_of_braces(config.target, grid);
  if (config.where_steps_are() == StepsFrom::output && config.rate_regex.empty() &&
      (config.log_pattern.empty() || counts_steps(config.log_pattern)) &&
      find_role(grid.point(0), "batch_size") == nullptr)
    notes.emplace_back("batch_size is not tuned here, so a printed it/s or s/it counts as one sample per step");
  return notes;
}

std::vector<Text> notes_after(const RunConfig& config, const Choice& choice, std::span<const Row> rows) {
  std::vector<Text> notes;
  const std::vector<std::string>& passed = config.target.passed;
  if (std::find(passed.begin(), passed.end(), "--batch-size") != passed.end())
    notes.push_back(
        format_text("all trials use batch_size={}; add `{}` to tune it", kBatchSize, option("grid", "batch_size=...")));
  if (choice.noise > 0) {
    notes.push_back(format_text("longer trials would tell more: runs of one point differ by up to {:.0f} % ({})",
                                100 * choice.noise,
                                option("bench_time", config.bench_time.empty() ? "2s" : "longer than now")));
  }
  if (Text note = note_of_unsteady(rows); !note.empty()) notes.push_back(std::move(note));
  return notes;
}

}  // namespace stoker::tune
