#include "stoker/report/settings.h"

#include <algorithm>

#include <fmt/format.h>

#include "stoker/base/json.h"
#include "stoker/base/shell.h"
#include "stoker/base/text.h"
#include "stoker/base/units.h"
#include "stoker/base/version.h"
#include "stoker/report/words.h"
#include "stoker/tune/template.h"

namespace stoker::report {
namespace {

std::string text_at(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) return "";
  return value_text(key, object.at(key));
}

std::vector<std::string> words_at(const Json& object, const char* key) {
  std::vector<std::string> words;
  if (!object.is_object() || !object.contains(key) || !object.at(key).is_array()) return words;
  for (const Json& word : object.at(key)) words.push_back(word.is_string() ? word.get<std::string>() : word.dump());
  return words;
}

// The flags that every trial got; earlier versions had one of another name.
std::vector<std::string> flags_at(const Json& config) {
  std::vector<std::string> words = words_at(config, "flags");
  std::replace(words.begin(), words.end(), std::string("--color"), std::string("--image-color"));
  return words;
}

// Settings of a function that have flags of their own.
constexpr std::string_view kFunctionFlags[] = {"seed", "subset", "subset_seed", "inflate", "step_ms"};

// The command that made a run of `stoker tune`.
std::vector<std::string> tune_command(const Json& config, const std::string& out) {
  std::vector<std::string> words = {"stoker", "tune"};
  for (const char* key : {"function", "source"}) {
    if (const std::string text = text_at(config, key); !text.empty()) words.push_back(text);
  }
  for (const std::string& word : flags_at(config)) words.push_back(word);
  const bool has_function = !text_at(config, "function").empty();
  if (has_function && config.contains("settings") && config.at("settings").is_object()) {
    for (const auto& [name, value] : config.at("settings").items()) {
      const bool is_flag =
          std::find(std::begin(kFunctionFlags), std::end(kFunctionFlags), name) != std::end(kFunctionFlags);
      if (is_flag) words.insert(words.end(), {flag_of(name), value_text("", value)});
      if (!is_flag) words.insert(words.end(), {"--with", fmt::format("{}={}", name, value_text("", value))});
    }
  }
  const std::vector<std::string> in_file = words_at(config, "set");
  if (config.contains("grid") && config.at("grid").is_object()) {
    for (const auto& [knob, values] : config.at("grid").items()) {
      std::string text;
      for (const Json& value : values) text += (text.empty() ? "" : ",") + value_text("", value);
      const bool is_in_file = std::find(in_file.begin(), in_file.end(), knob) != in_file.end();
      words.insert(words.end(), {is_in_file ? "--set" : "--grid", fmt::format("{}={}", knob, text)});
    }
  }
  if (has_function && text_at(config, "python") != "python3") {
    if (const std::string python = text_at(config, "python"); !python.empty())
      words.insert(words.end(), {"--python", python});
  }
  for (const char* key : {"search", "steps_from", "rate_regex", "effective_batch", "warmup_steps", "bench_steps",
                          "bench_time", "template", "config"}) {
    const std::string text = text_at(config, key);
    if (text.empty() || (std::string_view(key) == "steps_from" && text == "auto")) continue;
    words.insert(words.end(), {flag_of(key), text});
  }
  const bool is_knob = config.contains("grid") && config.at("grid").contains("shuffle");
  if (!is_knob && config.contains("shuffle") && config.at("shuffle") == true) words.emplace_back("--shuffle");
  words.insert(words.end(), {"--out", out});
  const std::vector<std::string> command = words_at(config, "command");
  if (!command.empty()) words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

// The job with the chosen knobs filled in.
std::vector<std::string> chosen_command(const Json& config, const tune::Point& point) {
  std::vector<std::string> words = words_at(config, "command");
  if (!words.empty()) {
    if (!text_at(config, "template").empty() || !text_at(config, "config").empty()) return {};  // a file has them
    for (std::string& word : words) {
      for (const auto& [knob, value] : point) {
        const std::string place = "{" + knob + "}";
        for (std::size_t at = word.find(place); at != std::string::npos; at = word.find(place, at + value.size()))
          word.replace(at, place.size(), value);
      }
    }
    return words;
  }
  const std::string source = text_at(config, "source");
  if (source.empty() || !text_at(config, "function").empty()) return {};
  words = {"stoker", "load", source};
  for (const std::string& word : flags_at(config)) words.push_back(word);
  for (const auto& [knob, value] : point) {
    if (knob == "shuffle") {
      if (value != "false") words.push_back(value == "true" ? "--shuffle" : "--shuffle=" + value);
      continue;
    }
    words.insert(words.end(), {flag_of(knob), value});
  }
  if (!point.contains("shuffle") && config.contains("shuffle") && config.at("shuffle") == true)
    words.emplace_back("--shuffle");
  return words;
}

bool is_ours(const Json& config) {
  return config.is_object() && config.contains("schema") && config.at("schema").is_string() &&
         config.at("schema").get<std::string>().starts_with("stoker.tune.config/");
}

std::string target_text(const RunView& view) {
  if (const std::string function = text_at(view.run.config, "function"); !function.empty()) return function;
  const std::string source = text_at(view.run.config, "source");
  if (!source.empty()) return source;
  const std::vector<std::string> command = words_at(view.run.config, "command");
  if (!command.empty()) return command_line(command);
  const std::string index = text_at(view.run.config, "index_csv");
  return index.empty() ? view.run.place : index;
}

void add_commands(const RunView& view, Report& report) {
  const tune::RecordedRun& run = view.run;
  const std::string place = shell_word(run.place);
  if (is_ours(run.config)) {
    report.commands.push_back(
        {"Run the same search again", command_line(tune_command(run.config, run.place + "-again"))});
    if (!run.unfinished.empty())
      report.commands.push_back({"Finish this one", fmt::format("stoker tune --resume {}", place)});
    if (view.chosen != nullptr) {
      const std::vector<std::string> words = chosen_command(run.config, *view.chosen->point);
      if (!words.empty()) report.commands.push_back({"Run with the chosen settings", command_line(words)});
    }
  } else if (!run.rows.empty()) {
    report.commands.push_back({"Make the choice again",
                               fmt::format("stoker tune --replay {}{}", place, run.is_folder ? "/results.csv" : "")});
  }
  report.commands.push_back({"Write this report again", fmt::format("stoker report {}", place)});
}

}  // namespace

std::optional<double> number_at(const Json& json, std::initializer_list<const char*> path) {
  const Json* at = &json;
  for (const char* key : path) {
    if (!at->is_object() || !at->contains(key)) return std::nullopt;
    at = &at->at(key);
  }
  return at->is_number() ? std::optional(at->get<double>()) : std::nullopt;
}

std::string value_text(const std::string& key, const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number()) {
    const double number = value.get<double>();
    if (key.ends_with("_bytes")) return byte_text(number);
    return value.is_whole() ? value.dump() : fmt::format("{:.6g}", number);
  }
  std::string text;
  if (value.is_array()) {
    for (const Json& one : value) text += (text.empty() ? "" : ", ") + value_text(key, one);
    return text;
  }
  for (const auto& [name, one] : value.items())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value_text(name, one));
  return text;
}

std::vector<Fact> facts_of(const Json& object, std::initializer_list<std::string_view> without) {
  std::vector<Fact> facts;
  if (!object.is_object()) return facts;
  for (const auto& [key, value] : object.items()) {
    if (std::find(without.begin(), without.end(), key) != without.end()) continue;
    std::string text = value_text(key, value);
    if (!text.empty())
      facts.push_back({key.ends_with("_bytes") ? key.substr(0, key.size() - 6) : key, std::move(text)});
  }
  return facts;
}

std::string command_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

void describe(const RunView& view, Report& report) {
  const tune::RecordedRun& run = view.run;
  const std::string target = target_text(view);
  const bool is_measured_here = is_ours(run.config);
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
        "Rates are those of the steady state: batches that lay ready before the clock started are not counted.");
  }
  if (run.config.is_object()) {
    report.configuration =
        facts_of(run.config, {"schema", "stoker_version", "grid", "environment", "flags", "command"});
    if (const auto words = words_at(run.config, "command"); !words.empty())
      report.configuration.insert(report.configuration.begin(), {"command", command_line(words)});
    if (const auto words = words_at(run.config, "flags"); !words.empty())
      report.configuration.push_back({"flags", command_line(words)});
    if (run.config.contains("grid") && run.config.at("grid").is_object()) {
      for (const auto& [knob, values] : run.config.at("grid").items())
        report.configuration.push_back({fmt::format("grid: {}", knob), value_text("", values)});
    }
    if (run.config.contains("environment")) report.environment = facts_of(run.config.at("environment"));
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
    if (run.config.is_object() || run.rows.empty() || !(run.rows[0].*field)) continue;
    const bool all = std::all_of(run.rows.begin(), run.rows.end(), [field = field, &run](const tune::Row& row) {
      return row.*field == run.rows[0].*field;
    });
    if (all) report.configuration.push_back({what, fmt::format("{}", *(run.rows[0].*field))});
  }
  if (run.subset.is_object()) {
    const std::string count = text_at(run.subset, "count"), seed = text_at(run.subset, "seed");
    report.configuration.push_back({"subset", fmt::format("{} samples{}", count.empty() ? "unknown number of" : count,
                                                          seed.empty() ? "" : fmt::format(", seed {}", seed))});
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
