#include "stoker/report/settings.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stoker/base/shell.h"
#include "stoker/base/text.h"
#include "stoker/base/version.h"
#include "stoker/report/words.h"
#include "stoker/tune/template.h"

namespace stoker::report {
namespace {

// Settings of a function that have flags of their own.
constexpr std::string_view kFunctionFlags[] = {"seed", "subset", "subset_seed", "inflate", "step_ms"};

// The command that made a run of `stoker tune`.
std::vector<std::string> tune_command(const tune::RunConfig& config, const std::string& out) {
  const tune::Target& target = config.target;
  std::vector<std::string> words = {"stoker", "tune"};
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {flag, value});
  };
  for (const std::string* text : {&target.function, &target.address}) {
    if (!text->empty()) words.push_back(*text);
  }
  words.insert(words.end(), target.passed.begin(), target.passed.end());
  const bool has_function = !target.function.empty();
  if (has_function) {
    for (const auto& [name, value] : target.settings) {
      const bool is_flag =
          std::find(std::begin(kFunctionFlags), std::end(kFunctionFlags), name) != std::end(kFunctionFlags);
      if (is_flag) words.insert(words.end(), {flag_of(name), value});
      if (!is_flag) words.insert(words.end(), {"--with", fmt::format("{}={}", name, value)});
    }
  }
  bool is_shuffle_knob = false;
  for (const tune::Knob& knob : config.knobs) {
    const auto in_file = std::find(target.config_keys.begin(), target.config_keys.end(), knob.name);
    add(in_file != target.config_keys.end() ? "--set" : "--grid",
        fmt::format("{}={}", knob.name, fmt::join(knob.values, ",")));
    is_shuffle_knob = is_shuffle_knob || knob.name == "shuffle";
  }
  if (has_function && target.python != "python3") add("--python", target.python);
  add("--search", config.search);
  if (config.steps_from != "auto") add("--steps-from", config.steps_from);
  add("--rate-regex", config.rate_regex);
  add("--log-pattern", config.log_pattern);
  add("--effective-batch", config.effective_batch);
  if (config.warmup_steps) add("--warmup-steps", std::to_string(*config.warmup_steps));
  if (config.bench_steps) add("--bench-steps", std::to_string(*config.bench_steps));
  add("--bench-time", config.bench_time);
  add("--template", target.template_file);
  add("--config", target.config_file);
  if (!is_shuffle_knob && config.shuffle.value_or(false)) words.emplace_back("--shuffle");
  add("--out", out);
  if (!target.command.empty()) words.emplace_back("--");
  words.insert(words.end(), target.command.begin(), target.command.end());
  return words;
}

// The job with the chosen knobs filled in.
std::vector<std::string> chosen_command(const tune::RunConfig& config, const tune::Point& point) {
  const tune::Target& target = config.target;
  std::vector<std::string> words = target.command;
  if (!words.empty()) {
    if (!target.template_file.empty() || !target.config_file.empty()) return {};  // a file has them
    for (std::string& word : words) {
      for (const auto& [knob, value] : point) {
        const std::string place = "{" + knob + "}";
        for (std::size_t at = word.find(place); at != std::string::npos; at = word.find(place, at + value.size()))
          word.replace(at, place.size(), value);
      }
    }
    return words;
  }
  if (target.address.empty() || !target.function.empty()) return {};
  words = {"stoker", "load", target.address};
  words.insert(words.end(), target.passed.begin(), target.passed.end());
  for (const auto& [knob, value] : point) {
    if (knob == "shuffle") {
      if (value != "false") words.push_back(value == "true" ? "--shuffle" : "--shuffle=" + value);
      continue;
    }
    words.insert(words.end(), {flag_of(knob), value});
  }
  if (!point.contains("shuffle") && config.shuffle.value_or(false)) words.emplace_back("--shuffle");
  return words;
}

bool is_ours(const tune::RecordedRun& run) {
  return run.config && run.config->is_of_tune();
}

std::string target_text(const tune::RecordedRun& run) {
  if (!run.config) return run.place;
  const tune::Target& target = run.config->target;
  if (!target.function.empty()) return target.function;
  if (!target.address.empty()) return target.address;
  if (!target.command.empty()) return command_line(target.command);
  return run.config->index_csv.empty() ? run.place : run.config->index_csv;
}

void add_commands(const RunView& view, Report& report) {
  const tune::RecordedRun& run = view.run;
  const std::string place = shell_word(run.place);
  if (is_ours(run)) {
    report.commands.push_back(
        {"Run the same search again", command_line(tune_command(*run.config, run.place + "-again"))});
    if (!run.unfinished.empty())
      report.commands.push_back({"Finish this one", fmt::format("stoker tune --resume {}", place)});
    if (view.chosen != nullptr) {
      const std::vector<std::string> words = chosen_command(*run.config, *view.chosen->point);
      if (!words.empty()) report.commands.push_back({"Run with the chosen settings", command_line(words)});
    }
  } else if (!run.rows.empty()) {
    report.commands.push_back({"Make the choice again",
                               fmt::format("stoker tune --replay {}{}", place, run.is_folder ? "/results.csv" : "")});
  }
  report.commands.push_back({"Write this report again", fmt::format("stoker report {}", place)});
}

}  // namespace

std::string command_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

void describe(const RunView& view, Report& report) {
  const tune::RecordedRun& run = view.run;
  const std::string target = target_text(run);
  const bool is_measured_here = is_ours(run);
  report.title = fmt::format("Tuning {}", target);
  std::string knobs;
  for (const std::string& knob : run.knobs) knobs += (knobs.empty() ? "" : ", ") + knob;
  report.context.push_back(is_measured_here ? fmt::format("Which {} feeds the step fastest, and what is the cheapest "
                                                          "setting that does as well? Each trial was one process of "
                                                          "its own with one setting.",
                                                          knobs.empty() ? "setting" : knobs)
                                            : fmt::format("Rows that were measured before and read from {}: rates for "
                                                          "different {}. Stoker chose among them and did not run "
                                                          "them.",
                                                          run.place, knobs.empty() ? "settings" : knobs));
  if (is_measured_here) {
    report.context.emplace_back(
        "Rates are those of the steady state: batches that were ready before the clock started are not counted.");
  }
  if (run.config) {
    const tune::RunConfig& config = *run.config;
    report.configuration = config.facts;
    if (!config.target.command.empty())
      report.configuration.insert(report.configuration.begin(), {"command", command_line(config.target.command)});
    if (!config.target.passed.empty()) report.configuration.push_back({"flags", command_line(config.target.passed)});
    for (const tune::Knob& knob : config.knobs)
      report.configuration.push_back(
          {fmt::format("grid: {}", knob.name), fmt::format("{}", fmt::join(knob.values, ", "))});
    report.environment = config.environment_facts;
  } else {
    for (const std::string& knob : run.knobs) {
      const std::vector<std::string> values = view.values(knob);
      std::string text;
      for (std::size_t i = 0; i < std::min<std::size_t>(values.size(), 16); ++i)
        text += (text.empty() ? "" : ", ") + values[i];
      if (values.size() > 16) text += fmt::format(" and {} more", values.size() - 16);
      report.configuration.push_back({fmt::format("grid: {}", knob), text});
    }
  }
  for (const auto& [what, field] :
       {std::pair("steps measured", &tune::Row::steps), std::pair("steps of warm-up", &tune::Row::warmup_steps)}) {
    if (run.config || run.rows.empty() || !(run.rows[0].*field)) continue;
    const bool all = std::all_of(run.rows.begin(), run.rows.end(), [field = field, &run](const tune::Row& row) {
      return row.*field == run.rows[0].*field;
    });
    if (all) report.configuration.push_back({what, fmt::format("{}", *(run.rows[0].*field))});
  }
  if (run.subset) {
    const auto& [count, seed] = *run.subset;
    report.configuration.push_back(
        {"subset", fmt::format("{} samples{}", count ? fmt::format("{}", *count) : "unknown number of",
                               seed ? fmt::format(", seed {}", *seed) : "")});
  }
  if (report.environment.empty()) report.environment.push_back({"machine and software", "not recorded"});
  add_commands(view, report);
  for (const std::string& file : run.files) {
    const char* const what = file == "results.csv"    ? "one row per trial"
                             : file == "results.json" ? "the same, with the choice"
                             : file == "config.json"  ? "what was run, and where"
                             : file == "subset.json"  ? "which samples"
                             : file == "plan.json"    ? "the plan"
                             : file == "trials"       ? "what each trial printed, and its steps"
                                                      : "";
    report.links.push_back({file == "trials" ? "trials/" : file, what});
  }
}

}  // namespace stoker::report
