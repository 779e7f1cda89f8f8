// stoker tune: runs a loader, or any command, with many settings, and says which to use.
#include <algorithm>
#include <ctime>
#include <deque>
#include <filesystem>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/base/utf8.h"
#include "stoker/base/version.h"
#include "stoker/dataset/dataset.h"
#include "stoker/dataset/narrowing.h"
#include "stoker/os/cpu.h"
#include "stoker/os/file.h"
#include "stoker/os/memory.h"
#include "stoker/report/files.h"
#include "stoker/tune/blocks.h"
#include "stoker/tune/environment.h"
#include "stoker/tune/measured.h"
#include "stoker/tune/results_csv.h"
#include "stoker/tune/search_space.h"
#include "stoker/tune/settings_text.h"
#include "stoker/tune/tuner.h"

#include "files.h"
#include "interrupt.h"
#include "load_options.h"
#include "narrowing_flags.h"
#include "other_programs.h"
#include "own_verb.h"
#include "scan.h"
#include "terminal.h"
#include "tune_report.h"
#include "tune_screen.h"
#include "tune_target.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

using tune::Point;

constexpr std::size_t kLongestLine = 200;  // of a trial's output that is shown
constexpr std::string_view kConfigSchema = "stoker.tune.config/1";

std::string duration_text(double seconds) {
  return format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
}

// Numbers are numbers in config.json.
Json number_or_null(const Arguments& arguments, const char* flag, std::uint64_t least = 0) {
  return arguments.has(flag) ? Json(arguments.count(flag, least)) : Json(nullptr);
}

Json config_of(const Arguments& arguments, const tune::Target& target, const tune::Grid& grid) {
  Json knobs = Json::object();
  for (const tune::Knob& knob : grid.knobs()) knobs[knob.name] = knob.values;
  const auto text_or_null = [&](const char* flag) {
    return arguments.has(flag) ? Json(arguments.text(flag)) : Json(nullptr);
  };
  const auto setting_or_null = [&](const char* name) {
    const auto found = target.settings.find(name);
    return found == target.settings.end() ? Json(nullptr) : tune::value_of(found->second);
  };
  Json config = {{"schema", kConfigSchema}, {"stoker_version", kVersion}};
  tune::write_target(target, config);
  config["subset_size"] = number_or_null(arguments, "--subset", 1);
  config["subset_seed"] = arguments.has("--subset") ? Json(arguments.count("--subset-seed")) : Json(nullptr);
  const Json narrowing = narrowing_of(arguments).to_json();
  for (const auto& [key, value] : narrowing.items()) {
    if (key.starts_with("class")) config[key] = value;
  }
  config["inflation_factor"] = number_or_null(arguments, "--inflate", 1);
  config["img_size"] = setting_or_null("img_size");
  config["window"] = setting_or_null("window");
  config["shuffle"] = arguments.is_on("--shuffle").value_or(false);
  config["search"] = arguments.text("--search");
  config["steps_from"] = arguments.text("--steps-from");
  config["rate_regex"] = text_or_null("--rate-regex");
  config["effective_batch"] = text_or_null("--effective-batch");
  config["warmup_steps"] = arguments.count("--warmup-steps");
  config["bench_steps"] = arguments.count("--bench-steps", 1);
  if (arguments.has("--bench-time")) {
    config["bench_time"] = arguments.text("--bench-time");
    (void)arguments.duration("--bench-time");
  }
  config["grid"] = knobs;
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

// Before the first trial, not after the last.
void check_apply(const Arguments& arguments, const std::string& config_file) {
  if (!arguments.has("--apply")) return;
  const std::string file = arguments.text("--apply");
  std::error_code ignored;
  if (!config_file.empty() && std::filesystem::equivalent(file, config_file, ignored)) {
    throw Error(ErrorKind::usage, fmt::format("`--apply {}` would replace the file of --config", file),
                "name another file, and take the values over");
  }
  require_free(file, arguments.has("--force"), "--apply");
  (void)tune::settings_format(file);
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored))
    throw Error(ErrorKind::not_found, fmt::format("cannot write `{}`: there is no folder `{}`", file, folder.string()));
}

// What a run has already is not to be said again: it would be ignored.
void refuse(const Arguments& arguments, const char* because, std::initializer_list<const char*> flags) {
  for (const char* flag : flags) {
    if (arguments.has(flag))
      throw Error(ErrorKind::usage, fmt::format("`{}` has no effect on {}", flag, because),
                  "leave it out, or start a new run");
  }
}

// `has_ended`: the user did not interrupt the search.
int finish(const Arguments& arguments, const Face& face, TuneReport& report, bool has_ended = true) {
  if (arguments.has("--apply")) {
    const std::string file = arguments.text("--apply");
    if (report.choice.chosen && has_ended) {
      os::write_file(file, tune::as_settings(report.rows[*report.choice.chosen].knobs, tune::settings_format(file)));
      report.notes.push_back(fmt::format("wrote the chosen knobs to `{}`", file));
    } else {
      report.notes.push_back(
          fmt::format("did not write `{}`: {}", file, has_ended ? "no trial succeeded" : "the search was interrupted"));
    }
  }
  answer(face.json ? to_json(report).dump(2) + "\n" : to_text(report, face.out));
  return report.choice.chosen ? 0 : 1;
}

int replay(const Arguments& arguments, const Face& face) {
  const std::string file = arguments.text("--replay");
  refuse(arguments, "rows that were recorded", {"--grid", "--grid-file", "--set", "--resume", "--out"});
  tune::ColumnMap columns;
  for (const std::string& text : arguments.all("--map")) tune::add_column(columns, text);
  check_apply(arguments, "");
  tune::Results results = tune::read_results(read_text(file), file, columns);
  TuneReport report;
  report.target = fmt::format("recorded rows of `{}`", file);
  report.rows = std::move(results.rows);
  report.notes = std::move(results.notes);
  report.choice = tune::choose(report.rows);
  report.grid_points = report.choice.points;
  return finish(arguments, face, report);
}

// What an earlier run was: a run that is resumed need not be described again.
Json config_of_before(const std::string& folder) {
  const std::string file = folder + "/config.json";
  if (!exists(file)) {
    throw Error(ErrorKind::not_found, fmt::format("cannot resume `{}`: it has no config.json", folder),
                "give the folder that an earlier `stoker tune` named");
  }
  Json config = Json::parse_or_null(read_text(file));
  if (!config.is_object() || config.value("schema", "") != kConfigSchema || !config.contains("grid")) {
    throw Error(ErrorKind::corrupt,
                fmt::format("cannot resume `{}`: its config.json is not one of `stoker tune`", folder));
  }
  return config;
}

// What would fail only after the search, or only in its first trial.
void check_first(const Arguments& arguments, const tune::Target& target, const Json& config) {
  check_apply(arguments, target.config_file);
  const auto deadline = arguments.duration("--deadline");
  if (config.contains("bench_time") && deadline.count() > 0 &&
      parse_duration(config.at("bench_time").get<std::string>()) >= deadline) {
    throw Error(ErrorKind::usage,
                fmt::format("a trial that measures for {} cannot end within its deadline of {}",
                            config.at("bench_time").get<std::string>(), arguments.text("--deadline")),
                "give a longer --deadline, or a shorter --bench-time");
  }
  if (arguments.has("--time-limit") && arguments.duration("--time-limit").count() <= 0) {
    throw Error(ErrorKind::usage,
                fmt::format("`--time-limit {}` leaves no time for any trial", arguments.text("--time-limit")),
                "leave it out for none");
  }
  (void)tune::steps_from(config, target);
  if (config.at("rate_regex").is_string()) tune::RateReader(config.at("rate_regex").get<std::string>(), 1);
  if (!target.address.empty() && target.address.find('{') == std::string::npos &&
      target.address.find("://") == std::string::npos && !exists(target.address)) {
    throw Error(ErrorKind::not_found, fmt::format("cannot open `{}`: No such file or directory", target.address));
  }
  const std::string file = target.function.substr(0, target.function.rfind(':'));
  if (file.ends_with(".py") && !exists(file)) {
    throw Error(ErrorKind::not_found, fmt::format("cannot open `{}`: No such file or directory", file));
  }
}

// What config.json says of the machine and of the job's Python.
Json environment_of(const tune::Target& target) {
  if (!target.function.empty()) {
    const tune::PythonFacts facts = tune::look_at_python(target.python);
    if (!facts.has_stoker) {
      throw Error(ErrorKind::usage,
                  fmt::format("cannot run `{}`: `{}` has no package `stoker`", target.function, target.python),
                  "install it there with pip, or choose the interpreter that has it: --python .venv/bin/python");
    }
    return tune::tuning_environment(&facts);
  }
  const std::string first = target.command.empty() ? "" : target.command.front();
  if (std::filesystem::path(first).filename().string().starts_with("python")) {
    try {
      const tune::PythonFacts facts = tune::look_at_python(first);
      return tune::tuning_environment(&facts);
    } catch (const Error&) {
      // the trial will tell
    }
  }
  return tune::tuning_environment(nullptr);
}

// Which samples the trials use, as config.json has it.
dataset::Narrowing narrowing_in(const Json& config) {
  dataset::Narrowing narrowing = dataset::Narrowing::from_json(config);
  if (config.at("subset_size").is_number()) narrowing.subset = config.at("subset_size").get<std::uint64_t>();
  return narrowing;
}

// The samples that --subset and --class-subset choose, opened as every trial will; none: all are used, or only the job
// knows.
dataset::DatasetPtr open_subset(const Face& face, const tune::Target& target, const Json& config,
                                std::vector<std::string>& notes) {
  const dataset::Narrowing narrowing = narrowing_in(config);
  if (narrowing.to_json().empty()) return nullptr;
  if (target.address.empty()) {
    notes.push_back("no subset.json: only the function knows its data; give its address behind it");
    return nullptr;
  }
  dataset::OpenOptions options;
  narrowing.put_into(options);
  const auto label = std::find(target.passed.begin(), target.passed.end(), "--label");
  if (label != target.passed.end()) options.label = *(label + 1);
  try {
    return scan(face, target.address, options);
  } catch (const Error& error) {
    if (target.is_ours()) throw;
    notes.push_back(fmt::format("no subset.json: {}", error.message()));
    return nullptr;
  }
}

// The data of all trials; null: only the job knows it.
dataset::DatasetPtr open_data(const Face& face, const tune::Target& target, const dataset::DatasetPtr& subset) {
  if (subset || target.address.empty()) return subset;
  try {
    return scan(face, target.address);
  } catch (const Error&) {
    if (target.is_ours()) throw;
    return nullptr;
  }
}

// As config.json has it: a run that is resumed must have the same.
Json describe_data(const dataset::DatasetPtr& data) {
  if (!data) return Json(nullptr);
  return {{"samples", data->size()}, {"fingerprint", fmt::format("{:016x}", data->facts().fingerprint)}};
}

// A batch that the data cannot fill would be measured, and would mean nothing.
void check_batches(const tune::Grid& grid, const tune::Target& target, const dataset::DatasetPtr& data, bool is_subset,
                   const Json& config) {
  double largest = 0;
  for (const Point& point : grid.points())
    largest = std::max(largest, tune::number_of(point, "batch_size").value_or(0));
  if (largest == 0) return;
  const auto& inflation = config.at("inflation_factor");
  const double samples = static_cast<double>(data->size()) * (inflation.is_number() ? inflation.get<double>() : 1);
  if (largest <= samples) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("batch_size={:g} is more than the {:g} samples of {}", largest, samples,
                  is_subset ? "the subset" : fmt::format("`{}`", target.address)),
      is_subset ? "use a larger --subset, or repeat it with --inflate 1000" : "repeat them with --inflate 1000");
}

// Points that ran at one time and failed at another: never chosen where others ran, so somebody must say why.
std::string note_of_unsteady(const std::vector<tune::Row>& rows) {
  std::string points;
  std::size_t count = 0;
  for (const tune::Measured& one : tune::measured(rows)) {
    if (one.ok.empty() || !one.has_failed) continue;
    if (++count <= 3) points += fmt::format("{}{}", count > 1 ? "; " : "", tune::text(*one.point));
  }
  if (count == 0) return "";
  return fmt::format("{} ran at one time and failed at another, and {} not chosen: {}{}",
                     count == 1 ? "a point" : fmt::format("{} points", count), count == 1 ? "is" : "are", points,
                     count > 3 ? "; ..." : "");
}

tune::SearchOptions search_options(const Arguments& arguments, const Json& config, const tune::Grid& grid) {
  tune::SearchOptions searching;
  searching.grid = grid;
  searching.limits.cores = os::effective_cores().available;
  searching.limits.host_bytes =
      arguments.has("--memory-limit") ? arguments.bytes("--memory-limit") : os::memory_limit().bytes;
  if (arguments.has("--device-memory-limit")) searching.limits.device_bytes = arguments.bytes("--device-memory-limit");
  if (config.at("effective_batch").is_string()) {
    const std::string word = config.at("effective_batch").get<std::string>();
    searching.effective_batch = tune::number_of(word);
    if (!searching.effective_batch) {
      throw Error(ErrorKind::usage, fmt::format("`--effective-batch` is a number, not `{}`", word));
    }
  }
  return searching;
}

// The points, and how long they take where earlier trials tell.
int dry_run(const Arguments& arguments, const Face& face, const tune::Target& target,
            const tune::SearchOptions& searching, const tune::Search& search, const std::string& how) {
  const tune::SearchSpace space(searching);
  const std::vector<Point>& points = space.points();
  std::uint64_t most = search.at_most();
  std::optional<double> each;
  if (arguments.has("--resume")) {
    const std::string file = arguments.text("--resume") + "/results.csv";
    double sum = 0, count = 0;
    for (const tune::Row& row : tune::read_results(read_text(file), file).rows) {
      if (row.trial_seconds) sum += *row.trial_seconds, ++count;
    }
    if (count > 0) each = sum / count;
    most -= std::min(most, static_cast<std::uint64_t>(count));
  }
  if (face.json) {
    Json json = {{"schema", "stoker.tune.dry_run/1"},
                 {"stoker_version", kVersion},
                 {"dry_run", true},
                 {"target", target.text()},
                 {"search", how},
                 {"points", Json::array()}};
    for (const Point& point : points) {
      Json knobs = Json::object();
      for (const auto& [knob, value] : point) knobs[knob] = value;
      json["points"].push_back(knobs);
    }
    json["trials_at_most"] = most;
    json["seconds_each"] = each ? Json(*each) : Json(nullptr);  // of earlier trials; null: not known
    answer(json.dump(2) + "\n");
    return 0;
  }
  std::string out =
      fmt::format("{}: {} {}, search {}\n", target.text(), points.size(), points.size() == 1 ? "point" : "points", how);
  for (const Point& point : points) out += "  " + tune::text(point) + "\n";
  out += each ? fmt::format("time: at most {} more trials of about {}: {}\n", most, duration_text(*each),
                            duration_text(*each * static_cast<double>(most)))
              : fmt::format("time: at most {} trials, each with {} + {} steps and its start, none longer than {}\n",
                            most, arguments.text("--warmup-steps"), arguments.text("--bench-steps"),
                            arguments.text("--deadline"));
  answer(printable_lines(out));
  return 0;
}

tune::TrialOptions trial_options(const Arguments& arguments, const tune::Target& target, const Json& config,
                                 const Point& point, const std::string& place) {
  tune::TrialOptions trial;
  trial.command = tune::command_for(target, point, place, config, own_program());
  trial.steps_from = tune::steps_from(config, target);
  trial.with_hook = !target.function.empty();
  if (config.at("rate_regex").is_string()) trial.rate_regex = config.at("rate_regex").get<std::string>();
  trial.batch_size = tune::number_of(point, "batch_size").value_or(0);
  trial.warmup_steps = config.at("warmup_steps").get<std::uint64_t>();
  trial.bench_steps = config.at("bench_steps").get<std::uint64_t>();
  if (config.contains("bench_time")) trial.bench_time = parse_duration(config.at("bench_time").get<std::string>());
  trial.deadline = arguments.duration("--deadline");
  trial.memory_limit =
      arguments.has("--memory-limit") ? arguments.bytes("--memory-limit") : os::memory_limit().bytes / 20 * 19;
  return trial;
}

// The end of what a trial wrote to stderr, for people.
std::string last_lines(const std::string& file, std::size_t count) {
  const std::string text = exists(file) ? read_text(file) : "";
  std::deque<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(fmt::format("  | {}\n", as_utf8(std::string_view(text).substr(at, end - at), kLongestLine)));
    if (lines.size() > count) lines.pop_front();
    at = end + 1;
  }
  return fmt::format("{}", fmt::join(lines, ""));
}

int run(const Arguments& arguments) {
  const Face face = make_face(arguments, arguments.text("--color"));
  if (arguments.has("--replay")) return replay(arguments, face);
  const bool described = !arguments.operands().empty() || !arguments.command().empty();
  Json config;
  if (arguments.has("--resume") && !described) {
    refuse(arguments, "a run that is resumed",
           {"--grid",       "--grid-file",  "--set",         "--out",         "--class-subset", "--class-subset-seed",
            "--class-list", "--subset",     "--subset-seed", "--inflate",     "--search",       "--seed",
            "--step-ms",    "--with",       "--python",      "--transform",   "--dtype",        "--image-color",
            "--storage",    "--shuffle",    "--label",       "--workload",    "--config",       "--template",
            "--steps-from", "--rate-regex", "--bench-time",  "--bench-steps", "--warmup-steps", "--effective-batch"});
    config = config_of_before(arguments.text("--resume"));
  } else {
    tune::Target wanted = make_target(arguments);
    const tune::Grid grid = make_grid(arguments, wanted);
    config = config_of(arguments, wanted, grid);
  }
  const tune::Target target = tune::read_target(config);
  const tune::Grid grid = tune::read_grid(config);
  check_first(arguments, target, config);
  const tune::SearchOptions searching = search_options(arguments, config, grid);
  const std::string how = config.at("search").get<std::string>();
  if (how != "auto" && how != "grid") {
    throw Error(ErrorKind::usage, fmt::format("`--search` is auto or grid, not `{}`", how));
  }
  const auto search = how == "grid" ? tune::grid_search(searching) : tune::auto_search(searching);
  if (arguments.has("--dry-run")) return dry_run(arguments, face, target, searching, *search, how);

  TuneReport report;
  report.notes = tune::notes_of_braces(target, grid);
  if (tune::steps_from(config, target) == tune::StepsFrom::output && !config.at("rate_regex").is_string() &&
      !tune::find_role(grid.points().front(), "batch_size"))
    report.notes.push_back("batch_size is not tuned here, so a printed it/s or s/it counts as one sample per step");
  if (!face.json) {
    for (const std::string& note : report.notes) say(printable_lines("note: " + note + "\n"));
  }
  config["environment"] = environment_of(target);
  const dataset::DatasetPtr subset = open_subset(face, target, config, report.notes);
  const dataset::DatasetPtr data = open_data(face, target, subset);
  config["data"] = describe_data(data);
  if (target.is_ours()) check_batches(grid, target, data, subset != nullptr, config);
  if (std::find(target.passed.begin(), target.passed.end(), "--batch-size") != target.passed.end())
    report.notes.push_back(
        fmt::format("all trials use batch_size={}; add `--grid batch_size=...` to tune it", tune::kBatchSize));
  tune::RunFolder folder =
      arguments.has("--resume")
          ? tune::RunFolder::resume(arguments.text("--resume"), config)
          : tune::RunFolder::make(arguments.has("--out") ? arguments.text("--out") : new_folder(), config);
  const std::string subset_file = folder.path() + "/subset.json";
  if (subset && !exists(subset_file)) {
    const dataset::Narrowing narrowing = narrowing_in(config);
    dataset::write_subset_json(*subset, narrowing.subset != 0 ? narrowing.subset_seed : narrowing.class_subset_seed,
                               subset_file);
  }
  watch_for_termination();  // so that no trial is left behind
  const bool quiet = face.json || arguments.has("--quiet");
  TuneScreen screen(face, quiet);
  tune::TunerOptions options;
  if (arguments.has("--time-limit")) options.time_limit = arguments.duration("--time-limit");
  options.interrupted = [&] {
    screen.tick();
    return interrupted();
  };
  options.trial = [&](const Point& point, const std::string& place) {
    return trial_options(arguments, target, config, point, place);
  };
  options.begun = [&](const tune::Ask& ask, std::uint64_t trial) { screen.begin(ask, trial, search->at_most()); };
  options.ended = [&](const tune::Ask& ask, const tune::Row& row, bool from_before) {
    screen.end(ask, row, from_before);
  };
  if (!quiet)
    say(printable_lines(fmt::format("tuning {}: {} {}, search {}; rows go to {}/results.csv\n", target.text(),
                                    grid.size(), grid.size() == 1 ? "point" : "points", how, folder.path())));
  double seconds_before = 0, cpu_seconds_before = 0;  // of a run that is resumed
  if (exists(folder.path() + "/results.json")) {
    const auto found = Json::parse_or_null(read_text(folder.path() + "/results.json"));
    if (found.is_object() && found.contains("seconds") && found.at("seconds").is_number()) {
      seconds_before = found.at("seconds").get<double>();
      cpu_seconds_before = found.value("tuner_cpu_seconds", 0.0);
    }
  }
  const std::chrono::nanoseconds cpu_before = os::process_cpu_time();
  const OtherPrograms others;
  const tune::Tuned tuned = [&] {
    try {
      return tune::run_search(*search, folder, options);
    } catch (const Error&) {
      if (!arguments.has("--resume")) folder.discard();
      throw;
    }
  }();
  screen.clear();

  report.target = target.text();
  report.folder = folder.path();
  report.rows = folder.rows();
  report.grid_points = grid.size();
  report.seconds = seconds_before + tuned.seconds;
  report.tuner_cpu_seconds =
      cpu_seconds_before + std::chrono::duration<double>(os::process_cpu_time() - cpu_before).count();
  report.choice = tune::choose(report.rows);
  if (report.choice.noise > 0) {
    report.notes.push_back(
        fmt::format("longer trials would tell more: runs of one point differ by up to {:.0f} % (--bench-time {})",
                    100 * report.choice.noise, config.contains("bench_time") ? "longer than now" : "2s"));
  }
  if (std::string note = others.note(); !note.empty()) report.notes.push_back(std::move(note));
  if (std::string note = note_of_unsteady(report.rows); !note.empty()) report.notes.push_back(std::move(note));
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
  folder.write_results(report.choice, facts_of(report));
  report::write_reports(folder.path(), report.unfinished, report.notes);
  if (tuned.finish == tune::Finish::user_error) {
    if (!face.json) say(printable_lines(last_lines(tuned.failed_trial + "/stderr", 8)));
    throw Error(ErrorKind::usage,
                fmt::format("a trial failed, and others would fail in the same way: {}", tuned.failure->cause),
                fmt::format("{}{}what it printed is in {}", tuned.failure->remedy,
                            tuned.failure->remedy.empty() ? "" : "; ", tuned.failed_trial));
  }
  const bool was_interrupted = tuned.finish == tune::Finish::interrupted;
  const int code = finish(arguments, face, report, !was_interrupted);
  return was_interrupted ? 130 : code;
}

}  // namespace

const Verb& tune_verb() {
  static const Verb verb = {
      "tune",
      "try many settings, safely, and choose the cheapest that is as good as the best",
      "[TARGET] [ADDRESS]",
      "data for our own loader; or module:function or file.py:function, and its data; or a command behind --",
      {{"stoker tune data/train --transform rrc:224 --grid num_workers=1,2,4", "our loader, at full speed"},
       {"stoker tune train.py:build --grid batch_size=32,64 --grid num_workers=0,4,8",
        "a function of one dict that returns (loader, step)"},
       {"stoker tune stoker.targets:image_folder data/train --grid num_workers=1,2,4",
        "a PyTorch DataLoader over images; also ct_slices, wav_folder, vit"},
       {"stoker tune --grid workers=0,4,8 -- python train.py -j {workers}",
        "a PyTorch job, unchanged: its DataLoader is measured from outside"},
       {"stoker tune --config train.yaml --set training.workers=1,4,6 -- python train.py {config}",
        "knobs that live in a file: each trial gets a copy"},
       {"stoker tune --replay results.csv --json", "only the choice, from rows that were measured before"}},
      {{"what to try",
        {{"--grid", "KNOB=V,V", "", "values of a knob; again for each knob", true},
         {"--grid-file", "FILE", "", "the same as YAML or JSON: `batch_size: [32, 64]`, a knob per line"},
         {"--search", "HOW", "auto", "auto (few trials, by a model) or grid (all points)", true},
         {"--time-limit", "TIME", "", "of the whole search, such as 10m; a trial that runs then counts for nothing",
          true},
         {"--effective-batch", "N", "", "only points where batch_size times accumulate_steps is N"},
         {"--dry-run", "", "", "print the points and how long they may take, and run nothing"}}},
       {"our loader, and a function",
        {option_flag("seed"),
         option_flag("class_subset"),
         option_flag("class_subset_seed"),
         option_flag("class_list"),
         option_flag("subset"),
         option_flag("subset_seed"),
         option_flag("inflate"),
         {"--step-ms", "MS", "", "emulated step of the accelerator"}}},
       {"a function",
        {{"--with", "NAME=VALUE", "", "a setting that it gets beside the knobs, such as img_size=224"},
         {"--python", "PROGRAM", "python3", "the interpreter that runs it; it needs the package stoker"}}},
       {"our loader",
        {option_flag("transform"),
         option_flag("color"),
         option_flag("dtype"),
         option_flag("storage"),
         option_flag("shuffle"),
         option_flag("label"),
         {"--workload", "NAME", "", "emulated accelerator, such as resnet50-h100"}}},
       {"a command, or a function",
        {{"--config", "FILE", "",
          "a .yaml, .json or .toml file; each trial gets a copy with the keys of --set changed, named by {config}"},
         {"--set", "KEY=V,V", "",
          "values of a dotted key of that file, such as training.workers=1,4,6; again for each"},
         {"--template", "FILE", "", "a text file with {knob} in it; each trial gets a copy, named by {template}"},
         {"--steps-from", "WHERE", "auto", "hook (torch DataLoaders), output (printed rates) or reports (JSON lines)"},
         {"--rate-regex", "REGEX", "", "finds samples per second in what it prints: its first group"}}},
       {"trials",
        {{"--warmup-steps", "N", "5", "steps before the clock starts"},
         {"--bench-steps", "N", "20", "steps that are measured"},
         {"--bench-time", "TIME", "", "more of them, until so long was measured; noisy machines want 2s or more"},
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
