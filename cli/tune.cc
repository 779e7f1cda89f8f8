// stoker tune: runs a loader, or any command, with many settings, and says which to use.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/base/units.h"
#include "stoker/base/version.h"
#include "stoker/os/cpu.h"
#include "stoker/os/memory.h"
#include "stoker/tune/blocks.h"
#include "stoker/tune/results_csv.h"
#include "stoker/tune/template.h"
#include "stoker/tune/tuner.h"

#include "files.h"
#include "interrupt.h"
#include "terminal.h"
#include "tune_report.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

using nlohmann::ordered_json;
using tune::Point;

constexpr std::string_view kConfigSchema = "stoker.tune.config/1";

// Knobs of our own loader, as flags of `stoker load`.
constexpr std::string_view kLoaderKnobs[] = {
    "batch_size", "num_workers",  "prefetch_factor", "storage", "io_depth", "io_batch", "read_ahead",
    "io_threads", "memory_limit", "seek_index",      "decode",  "shuffle",  "dtype"};
// Flags of ours that every trial of our loader gets as they are.
constexpr std::string_view kPassedOn[] = {"--transform", "--color-mode", "--dtype",       "--seed",
                                          "--label",     "--subset",     "--subset-seed", "--inflate",
                                          "--step-ms",   "--workload",   "--storage"};

std::string flag_of(std::string_view knob) {
  std::string flag = "--" + std::string(knob);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

struct Target {
  std::string address;               // our loader on this data; or
  std::vector<std::string> command;  // words with {knob}
  std::vector<std::string> passed;   // flags of `stoker load`
  std::string template_file;

  bool is_ours() const { return command.empty(); }
  std::string text() const {
    if (is_ours()) return fmt::format("our loader on `{}`", address);
    std::string out;
    for (const std::string& word : command) out += (out.empty() ? "" : " ") + word;
    return fmt::format("`{}`", out);
  }
};

std::string own_program() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "stoker" : path.string();
}

tune::Grid make_grid(const Arguments& arguments, const Target& target) {
  tune::Grid grid;
  for (const std::string& text : arguments.all("--grid")) {
    for (std::size_t at = 0; at < text.size();) {  // one word may hold several, as in a file
      const std::size_t end = std::min(text.find_first_of(" \t\n", at), text.size());
      if (end > at) grid.add(text.substr(at, end - at));
      at = end + 1;
    }
  }
  if (target.is_ours()) {
    if (grid.knobs().empty()) {
      const int cores = os::effective_cores().whole();
      std::string workers = "num_workers=1";
      for (int count = 2; count <= 2 * cores; count *= 2) workers += fmt::format(",{}", count);
      grid.add(workers);
      grid.add("prefetch_factor=1,2,4");
      grid.add("batch_size=32,64,128");
    }
    for (const tune::Knob& knob : grid.knobs()) {
      if (std::find(std::begin(kLoaderKnobs), std::end(kLoaderKnobs), knob.name) != std::end(kLoaderKnobs)) continue;
      const std::string near = nearest(knob.name, kLoaderKnobs, std::size(kLoaderKnobs));
      throw Error(ErrorKind::usage, fmt::format("our loader has no knob `{}`", knob.name),
                  near.empty() ? "its knobs are the flags of `stoker load`" : fmt::format("did you mean `{}`?", near));
    }
    return grid;
  }
  if (grid.knobs().empty()) {
    throw Error(ErrorKind::usage, "there is no knob to tune",
                "say which: --grid batch_size=32,64 --grid num_workers=0,4,8");
  }
  std::set<std::string> used;
  const Point first = grid.point(0);
  for (const std::string& word : target.command) tune::fill_in(word, first, {}, used);
  if (!target.template_file.empty()) tune::fill_in(read_text(target.template_file), first, {}, used);
  for (const tune::Knob& knob : grid.knobs()) {
    if (used.contains(knob.name)) continue;
    throw Error(ErrorKind::usage, fmt::format("nothing in the command takes `{}`", knob.name),
                fmt::format("write `{{{}}}` where its value belongs", knob.name));
  }
  return grid;
}

tune::StepsFrom steps_from(const ordered_json& config, const Target& target) {
  const std::string word = config.at("steps_from").get<std::string>();
  if (word == "reports" || (word == "auto" && target.is_ours())) return tune::StepsFrom::reports;
  if (word == "output" || (word == "auto" && config.at("rate_regex").is_string())) return tune::StepsFrom::output;
  if (word == "hook" || word == "auto") return tune::StepsFrom::hook;
  throw Error(ErrorKind::usage, fmt::format("`--steps-from` is auto, hook, output or reports, not `{}`", word));
}

std::vector<std::string> command_for(const Target& target, const Point& point, const std::string& folder,
                                     const ordered_json& config) {
  if (target.is_ours()) {
    std::vector<std::string> command = {own_program(), "load", target.address, "--quiet"};
    command.insert(command.end(), target.passed.begin(), target.passed.end());
    bool shuffled = config.at("shuffle").get<bool>();
    for (const auto& [knob, value] : point) {
      if (knob == "shuffle") {
        shuffled = false;
        if (value == "blocks" || value == "full") command.push_back("--shuffle=" + value);
        if (value == "true") command.push_back("--shuffle");
        continue;
      }
      command.push_back(flag_of(knob));
      command.push_back(value);
    }
    if (shuffled) command.push_back("--shuffle");
    for (const char* knob : {"warmup_steps", "bench_steps"}) {
      command.push_back(flag_of(knob));
      command.push_back(std::to_string(config.at(knob).get<std::uint64_t>()));
    }
    return command;
  }
  std::set<std::string> used;
  Point more;
  if (!target.template_file.empty()) {
    const std::string name = std::filesystem::path(target.template_file).filename().string();
    more["template"] = folder + "/" + name;
    write_whole(more["template"], tune::fill_in(read_text(target.template_file), point, {}, used));
  }
  more["trial"] = folder;
  std::vector<std::string> command;
  for (const std::string& word : target.command) command.push_back(tune::fill_in(word, point, more, used));
  return command;
}

ordered_json config_of(const Arguments& arguments, const Target& target, const tune::Grid& grid) {
  ordered_json knobs = ordered_json::object();
  for (const tune::Knob& knob : grid.knobs()) knobs[knob.name] = knob.values;
  const auto text_or_null = [&](const char* flag) {
    return arguments.has(flag) ? ordered_json(arguments.text(flag)) : ordered_json(nullptr);
  };
  ordered_json config = {{"schema", kConfigSchema}, {"stoker_version", kVersion}};
  config["source"] = target.is_ours() ? ordered_json(target.address) : ordered_json(nullptr);
  config["command"] = target.is_ours() ? ordered_json(nullptr) : ordered_json(target.command);
  config["flags"] = target.passed;
  config["template"] = target.template_file.empty() ? ordered_json(nullptr) : ordered_json(target.template_file);
  config["subset_size"] = text_or_null("--subset");
  config["subset_seed"] = text_or_null("--subset-seed");
  config["inflation_factor"] = text_or_null("--inflate");
  config["shuffle"] = arguments.is_on("--shuffle").value_or(true);
  config["search"] = arguments.text("--search");
  config["steps_from"] = arguments.text("--steps-from");
  config["rate_regex"] = text_or_null("--rate-regex");
  config["effective_batch"] = text_or_null("--effective-batch");
  config["warmup_steps"] = arguments.count("--warmup-steps");
  config["bench_steps"] = arguments.count("--bench-steps", 1);
  config["grid"] = knobs;
  const os::Cores cores = os::effective_cores();
  config["environment"] = {
      {"cores", cores.available}, {"memory_bytes", os::memory_limit().bytes}, {"stoker", kVersion}};
  return config;
}

// runs/tune/20261116_061500, or with a number behind it.
std::string new_folder() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%d_%H%M%S", &parts);
  std::string path = fmt::format("runs/tune/{}", stamp);
  for (int i = 2; std::filesystem::exists(path); ++i) path = fmt::format("runs/tune/{}_{}", stamp, i);
  return path;
}

std::string settings_format(const std::string& file) {
  const std::string extension = std::filesystem::path(file).extension().string();
  if (extension == ".yaml" || extension == ".yml") return "yaml";
  if (extension == ".py") return "python";
  if (extension == ".json") return "json";
  throw Error(ErrorKind::usage, fmt::format("`--apply` writes .json, .yaml or .py, not `{}`", file));
}

int finish(const Arguments& arguments, const Face& face, TuneReport& report) {
  if (arguments.has("--apply") && report.choice.chosen && report.unfinished.empty()) {
    const std::string file = arguments.text("--apply");
    write_whole(file, as_settings(report.rows[*report.choice.chosen].knobs, settings_format(file)));
    report.notes.push_back(fmt::format("wrote the chosen knobs to `{}`", file));
  }
  answer(face.json ? to_json(report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"
                   : to_text(report, face.out));
  return report.choice.chosen ? 0 : 1;
}

int replay(const Arguments& arguments, const Face& face) {
  const std::string file = arguments.text("--replay");
  tune::ColumnMap columns;
  for (const std::string& text : arguments.all("--map")) tune::add_column(columns, text);
  if (arguments.has("--apply")) {
    require_free(arguments.text("--apply"), arguments.has("--force"), "--apply");
    (void)settings_format(arguments.text("--apply"));
  }
  tune::Results results = tune::read_results(read_text(file), file, columns);
  TuneReport report;
  report.target = fmt::format("recorded rows of `{}`", file);
  report.rows = std::move(results.rows);
  report.grid_points = report.rows.size();
  for (const std::string& column : results.ignored)
    report.notes.push_back(fmt::format("column `{}` is not used", column));
  report.choice = tune::choose(report.rows);
  return finish(arguments, face, report);
}

Target make_target(const Arguments& arguments) {
  Target target;
  target.command = arguments.command();
  target.template_file = arguments.text("--template");
  if (!target.is_ours()) {
    if (!arguments.operands().empty()) {
      throw Error(ErrorKind::usage, fmt::format("`{}` and a command behind `--` are two targets", arguments.operand()),
                  "give one of the two");
    }
    return target;
  }
  target.address = arguments.operand();
  for (const std::string_view flag : kPassedOn) {
    const std::string name = flag == "--color-mode" ? "--color" : std::string(flag);
    if (!arguments.has(flag)) continue;
    target.passed.push_back(name);
    target.passed.push_back(arguments.text(flag));
  }
  return target;
}

// What an earlier run was: a run that is resumed need not be described again.
ordered_json config_of_before(const std::string& folder) {
  const std::string file = folder + "/config.json";
  if (!exists(file)) {
    throw Error(ErrorKind::not_found, fmt::format("cannot resume `{}`: it has no config.json", folder),
                "give the folder that an earlier `stoker tune` named");
  }
  ordered_json config = ordered_json::parse(read_text(file), nullptr, false);
  if (!config.is_object() || config.value("schema", "") != kConfigSchema || !config.contains("grid")) {
    throw Error(ErrorKind::corrupt,
                fmt::format("cannot resume `{}`: its config.json is not one of `stoker tune`", folder));
  }
  return config;
}

Target target_of(const ordered_json& config) {
  Target target;
  if (config.at("source").is_string()) target.address = config.at("source").get<std::string>();
  if (config.at("command").is_array()) target.command = config.at("command").get<std::vector<std::string>>();
  if (config.at("template").is_string()) target.template_file = config.at("template").get<std::string>();
  target.passed = config.at("flags").get<std::vector<std::string>>();
  return target;
}

tune::Grid grid_of(const ordered_json& config) {
  tune::Grid grid;
  for (const auto& [knob, values] : config.at("grid").items()) {
    std::string text = knob + "=";
    for (const auto& value : values) text += (text.back() == '=' ? "" : ",") + value.get<std::string>();
    grid.add(text);
  }
  return grid;
}

// What would fail only after the search, or only in its first trial.
void check_first(const Arguments& arguments, const Target& target, const ordered_json& config) {
  if (arguments.has("--apply")) {
    require_free(arguments.text("--apply"), arguments.has("--force"), "--apply");
    (void)settings_format(arguments.text("--apply"));
  }
  (void)arguments.duration("--deadline");
  (void)steps_from(config, target);
  if (config.at("rate_regex").is_string()) tune::RateReader(config.at("rate_regex").get<std::string>(), 1);
  if (target.is_ours() && target.address.find('{') == std::string::npos && !exists(target.address)) {
    throw Error(ErrorKind::not_found, fmt::format("cannot open `{}`: No such file or directory", target.address));
  }
}

int run(const Arguments& arguments) {
  const Face face = make_face(arguments, arguments.text("--color"));
  if (arguments.has("--replay")) return replay(arguments, face);
  const bool resumes = arguments.has("--resume");
  const bool described = !arguments.operands().empty() || !arguments.command().empty();
  ordered_json config;
  if (resumes && !described) {
    config = config_of_before(arguments.text("--resume"));
  } else {
    const Target wanted = make_target(arguments);
    config = config_of(arguments, wanted, make_grid(arguments, wanted));
  }
  const Target target = target_of(config);
  const tune::Grid grid = grid_of(config);
  check_first(arguments, target, config);
  tune::SearchOptions searching;
  searching.grid = grid;
  searching.limits.cores = os::effective_cores().available;
  searching.limits.host_bytes =
      arguments.has("--memory-limit") ? arguments.bytes("--memory-limit") : os::memory_limit().bytes;
  if (arguments.has("--device-memory-limit")) searching.limits.device_bytes = arguments.bytes("--device-memory-limit");
  if (config.at("effective_batch").is_string()) {
    searching.effective_batch = tune::number_of(config.at("effective_batch").get<std::string>());
  }
  const std::string how = config.at("search").get<std::string>();
  if (how != "auto" && how != "grid") {
    throw Error(ErrorKind::usage, fmt::format("`--search` is auto or grid, not `{}`", how));
  }
  const auto search = how == "grid" ? tune::grid_search(searching) : tune::auto_search(searching);
  if (arguments.has("--dry-run")) {
    std::string out = fmt::format("{}: {} points, search {}\n", target.text(), grid.size(), how);
    for (const Point& point : grid.points()) out += "  " + tune::text(point) + "\n";
    answer(printable(out));
    return 0;
  }

  tune::RunFolder folder =
      arguments.has("--resume")
          ? tune::RunFolder::resume(arguments.text("--resume"), config)
          : tune::RunFolder::make(arguments.has("--out") ? arguments.text("--out") : new_folder(), config);
  tune::TunerOptions options;
  if (arguments.has("--time-limit")) options.time_limit = arguments.duration("--time-limit");
  options.interrupted = interrupted;
  const tune::StepsFrom from = steps_from(config, target);
  options.trial = [&](const Point& point, const std::string& place) {
    tune::TrialOptions trial;
    trial.command = command_for(target, point, place, config);
    trial.steps_from = from;
    if (config.at("rate_regex").is_string()) trial.rate_regex = config.at("rate_regex").get<std::string>();
    trial.batch_size = tune::number_of(point, "batch_size").value_or(0);
    trial.warmup_steps = config.at("warmup_steps").get<std::uint64_t>();
    trial.bench_steps = config.at("bench_steps").get<std::uint64_t>();
    trial.deadline = arguments.duration("--deadline");
    trial.memory_limit =
        arguments.has("--memory-limit") ? arguments.bytes("--memory-limit") : os::memory_limit().bytes / 20 * 19;
    return trial;
  };
  const bool quiet = face.json || arguments.has("--quiet");
  std::uint64_t done = 0;
  Bar bar(face, "tuning");
  options.begun = [&](const tune::Ask&, std::uint64_t) { bar.update(done, "trials"); };
  options.ended = [&](const tune::Ask& ask, const tune::Row& row, bool from_before) {
    ++done;
    bar.clear();
    if (!quiet && !from_before) say(printable(one_line(ask, row)));
  };
  if (!quiet)
    say(printable(fmt::format("tuning {}: {} {}, search {}; rows go to {}/results.csv\n", target.text(), grid.size(),
                              grid.size() == 1 ? "point" : "points", how, folder.path())));
  const tune::Tuned tuned = tune::run_search(*search, folder, options);
  bar.clear();

  TuneReport report;
  report.target = target.text();
  report.folder = folder.path();
  report.rows = folder.rows();
  report.grid_points = grid.size();
  report.seconds = tuned.seconds;
  report.choice = tune::choose(report.rows);
  switch (tuned.finish) {
    case tune::Finish::done:
      break;
    case tune::Finish::out_of_time:
      report.unfinished = fmt::format("the time limit ended the search; continue with --resume {}", folder.path());
      break;
    case tune::Finish::interrupted:
      report.unfinished = fmt::format("interrupted; continue with --resume {}", folder.path());
      break;
    case tune::Finish::user_error:
      report.unfinished = "a trial failed in a way that would repeat";
      break;
  }
  folder.write_results(report.choice, to_markdown(report));
  if (tuned.finish == tune::Finish::user_error) {
    throw Error(ErrorKind::usage, fmt::format("a trial failed by itself: {}", tuned.failure->cause),
                fmt::format("{}{}what it printed is in {}", tuned.failure->remedy,
                            tuned.failure->remedy.empty() ? "" : "; ", tuned.failed_trial));
  }
  const int code = finish(arguments, face, report);
  return tuned.finish == tune::Finish::interrupted ? 130 : code;
}

}  // namespace

const Verb& tune_verb() {
  static const Verb verb = {
      "tune",
      "try many settings, safely, and choose the cheapest that is as good as the best",
      "[ADDRESS]",
      "data for our own loader; or a command behind --",
      {{"stoker tune data/train --transform rrc:224 --grid num_workers=1,2,4", "our loader, at full speed"},
       {"stoker tune --grid workers=0,4,8 -- python train.py -j {workers}",
        "a PyTorch job, unchanged: its DataLoader is measured from outside"},
       {"stoker tune --replay results.csv --json", "only the choice, from rows that were measured before"}},
      {{"what to try",
        {{"--grid", "KNOB=V,V", "", "values of a knob; again for each knob", true},
         {"--search", "HOW", "auto", "auto (few trials, by a model) or grid (all points)", true},
         {"--time-limit", "TIME", "", "start no trial after that, such as 10m", true},
         {"--effective-batch", "N", "", "only points where batch_size times accumulate_steps is N"},
         {"--dry-run", "", "", "print the points and run nothing"}}},
       {"our loader",
        {{"--transform", "TEXT", "", "as in `stoker load`", true},
         {"--color-mode", "NAME", "", "pictures as rgb, gray or keep"},
         {"--dtype", "NAME", "", "of the batch"},
         {"--storage", "NAME", "", "how bytes are read, unless it is a knob"},
         {"--shuffle", "", "yes", "a new order every epoch", false, true},
         {"--seed", "N", "", "of the order and of random transforms"},
         {"--label", "COLUMN", "", "of an index.csv"},
         {"--subset", "N", "", "only N samples"},
         {"--subset-seed", "N", "", "of --subset"},
         {"--inflate", "N", "", "repeat the data set N times without copying it"},
         {"--step-ms", "MS", "", "emulated step of the accelerator"},
         {"--workload", "NAME", "", "emulated accelerator, such as resnet50-h100"}}},
       {"a command",
        {{"--template", "FILE", "", "a text file with {knob} in it; each trial gets a copy, named by {template}"},
         {"--steps-from", "WHERE", "auto", "hook (torch DataLoaders), output (printed rates) or reports (JSON lines)"},
         {"--rate-regex", "REGEX", "", "finds samples per second in what it prints: its first group"}}},
       {"trials",
        {{"--warmup-steps", "N", "5", "steps before the clock starts"},
         {"--bench-steps", "N", "20", "steps that are measured"},
         {"--deadline", "TIME", "10m", "of one trial"},
         {"--memory-limit", "BYTES", "", "of one trial's processes; without: what the machine or its cgroup allows"},
         {"--device-memory-limit", "BYTES", "", "points that would need more are not tried"}}},
       {"output",
        {{"--out", "DIR", "", "the run's folder; without: runs/tune/<date and time>", true},
         {"--resume", "DIR", "", "continue that run: what ran is not run again", true},
         {"--apply", "FILE", "", "write the chosen knobs as .json, .yaml or .py keyword arguments"},
         {"--replay", "FILE", "", "choose from recorded rows, ours or others'"},
         {"--map", "OURS=THEIRS", "",
          "of --replay: the file's column for one of ours, such as images_per_s=throughput"},
         {"--force", "", "", "overwrite the file of --apply"}}},
       common_flags()},
      nullptr,
      run,
      false,
      true};
  return verb;
}

}  // namespace stoker::cli
