// stoker tune: runs a loader, or any command, with many settings, and says which to use.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <deque>
#include <filesystem>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/json.h"
#include "stoker/base/shell.h"
#include "stoker/base/units.h"
#include "stoker/base/utf8.h"
#include "stoker/base/version.h"
#include "stoker/dataset/dataset.h"
#include "stoker/loader/loader.h"
#include "stoker/loader/option_table.h"
#include "stoker/os/cpu.h"
#include "stoker/os/file.h"
#include "stoker/os/temporary_folder.h"
#include "stoker/report/files.h"
#include "stoker/tune/config_file.h"
#include "stoker/tune/config_json.h"
#include "stoker/tune/job_loader.h"
#include "stoker/tune/results_csv.h"
#include "stoker/tune/run_data.h"
#include "stoker/tune/run_setup.h"
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

constexpr std::size_t kLongestLine = 200;        // of a trial's output that is shown
constexpr const char* kBackup = ".before-tune";  // ends the name of a config file as it was before --apply changed it

std::string duration_text(double seconds) {
  return format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
}

tune::RunConfig config_of(const Arguments& arguments) {
  tune::RunConfig config;
  config.target = tune::make_target(target_wishes(arguments));
  config.knobs = tune::make_grid(grid_wishes(arguments), config.target).knobs();
  config.narrowing = narrowing_of(arguments);
  if (arguments.has("--inflate")) config.inflation_factor = arguments.count("--inflate", 1);
  config.shuffle = arguments.is_on("--shuffle").value_or(false);
  config.search = arguments.text("--search");
  config.steps_from = arguments.text("--steps-from");
  config.rate_regex = arguments.text("--rate-regex");
  config.log_pattern = arguments.text("--log-pattern");
  config.effective_batch = arguments.text("--effective-batch");
  config.warmup_steps = arguments.count("--warmup-steps");
  config.bench_steps = arguments.count("--bench-steps", 1);
  config.bench_time = arguments.text("--bench-time");
  if (arguments.has("--bench-time")) (void)arguments.duration("--bench-time");
  return config;
}

tune::RunLimits limits_of(const Arguments& arguments) {
  tune::RunLimits limits;
  if (arguments.has("--memory-limit")) limits.memory_bytes = arguments.bytes("--memory-limit");
  if (arguments.has("--device-memory-limit")) limits.device_memory_bytes = arguments.bytes("--device-memory-limit");
  limits.deadline = arguments.duration("--deadline");
  if (arguments.has("--time-limit") && arguments.duration("--time-limit").count() <= 0) {
    throw Error(ErrorKind::usage,
                fmt::format("`--time-limit {}` leaves no time for any trial", arguments.text("--time-limit")),
                "leave it out for none");
  }
  return limits;
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

// --apply of the file that --config names changes it in place.
bool is_config(const std::string& file, const std::string& config_file) {
  std::error_code ignored;
  return !config_file.empty() && std::filesystem::equivalent(file, config_file, ignored);
}

// Before the first trial, not after the last.
void check_apply(const Arguments& arguments, const std::string& config_file) {
  if (!arguments.has("--apply")) return;
  const std::string file = arguments.text("--apply");
  std::error_code ignored;
  if (is_config(file, config_file)) return require_free(file + kBackup, arguments.has("--force"), "--apply");
  require_free(file, arguments.has("--force"), "--apply");
  (void)tune::settings_format(file);
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored))
    throw Error(ErrorKind::not_found, fmt::format("cannot write `{}`: there is no folder `{}`", file, folder.string()));
}

// Runs a job that has a DataLoader to tune once as it is, and takes from it what the search needs: where the loader is
// made and, without --grid, what to try. None: the knobs of this target are all its own.
// `is_over`: the time limit of the search has passed.
std::optional<tune::JobLook> look_first(const Arguments& arguments, const Face& face, tune::RunConfig& config,
                                        const tune::RunLimits& limits, const std::function<bool()>& is_over) {
  tune::Target& target = config.target;
  const bool proposes = !target.command.empty() && config.knobs.empty();
  if (arguments.has("--loader") && !proposes && target.loader_knobs.empty()) {
    throw Error(ErrorKind::usage,
                "`--loader` names a DataLoader of a job, and no knob of this search is one of its arguments",
                "leave it out, or tune num_workers, prefetch_factor, pin_memory, persistent_workers or "
                "multiprocessing_context");
  }
  if (!proposes && !target.needs_look()) return std::nullopt;
  if (arguments.has("--dry-run")) {
    throw Error(ErrorKind::usage, "`--dry-run` runs nothing, and only a run tells which DataLoader the job makes",
                "leave it out: the points are printed before the first trial");
  }
  const os::TemporaryFolder folder("stoker-look-");
  tune::TrialOptions trial = tune::trial_options(
      config, limits, config.knobs.empty() ? Point{} : config.grid().point(0), folder.path(), own_program());
  trial.folder = folder.path();
  trial.steps_from = tune::StepsFrom::hook;
  trial.environment.erase("STOKER_SETTINGS");
  trial.environment["STOKER_LOOK"] = "1";
  const bool quiet = face.json || arguments.has("--quiet");
  if (!quiet) say(printable_lines(fmt::format("looking at {}: one run as it is\n", target.text())));
  watch_for_termination();
  const tune::JobLook look = [&] {
    try {
      return tune::look_at_job(trial, arguments.text("--loader"), [&] { return interrupted() || is_over(); });
    } catch (const Error&) {
      if (interrupted() || !is_over()) throw;
      throw Error(ErrorKind::usage,
                  fmt::format("`--time-limit {}` is over, and the first run of the job has not ended",
                              arguments.text("--time-limit")),
                  "give it more time: the search looks at the job once as it is, then tries settings");
    }
  }();
  target.loader = {.file = look.loader.file, .name = look.loader.name, .line = look.loader.line};
  if (proposes) {
    config.knobs = tune::propose_grid(look, tune::room_of_machine()).knobs();
    for (const tune::Knob& knob : config.knobs) target.loader_knobs.push_back(knob.name);
  }
  return look;
}

// The grid of a job that was looked at, with the time that it takes.
void say_grid(const tune::JobLook& look, const tune::RunConfig& config, const tune::SearchOptions& searching,
              const tune::Search& search) {
  std::string out = fmt::format("DataLoader at {}:{}: {} samples/s as it is ({})\n",
                                std::filesystem::path(look.loader.file).filename().string(), look.loader.line,
                                format_rate(look.images_per_s),
                                tune::text(tune::present_settings(look.loader, config.target.loader_knobs)));
  for (const tune::Knob& knob : config.knobs) out += fmt::format("  {}: {}\n", knob.name, fmt::join(knob.values, ", "));
  const std::uint64_t most = tune::forecast(searching, search, {}).trials_at_most;
  out += fmt::format("time: at most {} trials of about {}: {}\n", most, duration_text(look.seconds),
                     duration_text(look.seconds * static_cast<double>(most)));
  if (look.loader.iterable)
    out += "note: its data set is an IterableDataset: more workers repeat samples unless it shares them itself\n";
  say(printable_lines(out));
}

// What the choice means for the job: settings.json for `stoker run`, and what to change in the source.
void add_change(const tune::RunConfig& config, const std::optional<tune::JobLook>& look, TuneReport& report) {
  const tune::Target& target = config.target;
  if (target.loader_knobs.empty() || !report.choice.chosen) return;
  const Point& chosen = report.rows[*report.choice.chosen].knobs;
  os::write_file(report.folder + "/settings.json",
                 tune::settings_json(target.loader, chosen, target.loader_knobs).dump(2) + "\n");
  std::string words;
  for (const std::string& word : target.command) words += (words.empty() ? "" : " ") + shell_word(word);
  if (target.loader_knobs.size() == chosen.size())  // else the command holds values of its own
    report.apply = fmt::format("stoker run --settings {} -- {}", shell_word(report.folder), words);
  if (!look) return;
  const Point before = tune::present_settings(look->loader, target.loader_knobs);
  report.change = tune::change_text(target.loader, before, chosen);
  if (report.change.empty()) report.change = "none: the job's present settings are as good as any that were tried";
  if (exists(target.loader.file)) {
    report.diff = tune::source_diff(std::filesystem::path(target.loader.file).filename().string(),
                                    read_text(target.loader.file), look->loader.literals, before, chosen);
  }
  const std::vector<std::string> missing = tune::missing_in_source(look->loader.literals, before, chosen);
  if (!report.diff.empty() && !missing.empty()) {
    report.notes.push_back(fmt::format(
        "the diff lacks {}, which the source does not name yet: add {} to the arguments of that DataLoader, too",
        fmt::join(missing, " and "), missing.size() == 1 ? "it" : "them"));
  }
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
int finish(const Arguments& arguments, const Face& face, TuneReport& report, const tune::Target& target,
           bool has_ended = true) {
  if (arguments.has("--apply")) {
    const std::string file = arguments.text("--apply");
    if (report.choice.chosen && has_ended && is_config(file, target.config_file)) {
      const std::string before = read_text(file);
      os::write_file(file + kBackup, before);
      os::write_file(file,
                     tune::ConfigFile(before, file).with(report.rows[*report.choice.chosen].knobs, target.config_keys));
      report.notes.push_back(fmt::format("changed `{0}` in place; as it was: `{0}{1}`", file, kBackup));
    } else if (report.choice.chosen && has_ended) {
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
  report.notes = in_flags(results.notes, arguments.verb());
  report.choice = tune::choose(report.rows);
  report.grid_points = report.choice.points;
  return finish(arguments, face, report, {});
}

// What the first trial asks of our loader, read as `stoker load` will read it. Throws Error(usage).
loader::Request first_request(const tune::RunConfig& config) {
  std::vector<std::string> words = tune::command_for(config, config.grid().point(0), "", "stoker");
  words.erase(words.begin(), words.begin() + 2);  // stoker load
  const Arguments arguments(load_verb(), words);
  return loader_request(arguments, emulated_step(arguments).workload);
}

// Throws Error where the first trial of our loader would end the search. One whose memory_limit is too low does not.
void check_first_trial(const Face& face, const tune::RunConfig& config) {
  const auto open = [&](const std::string& address, const dataset::OpenOptions& how) {
    return scan(face, address, how);
  };
  tune::check_batches(config, tune::open_run_data(config, open));
  const loader::Request request = first_request(config);
  const dataset::DatasetPtr data = open(config.target.address, request.opening);
  try {
    const loader::Loader refuses_wrong_options(data, request.loader);
  } catch (const Error& error) {
    if (error.option() != "memory_limit") throw;
  }
}

// The points, and how long they take where earlier trials tell.
int dry_run(const Arguments& arguments, const Face& face, const tune::RunConfig& config,
            const tune::SearchOptions& searching, const tune::Search& search) {
  std::vector<tune::Row> earlier;
  if (arguments.has("--resume")) {
    const std::string file = arguments.text("--resume") + "/results.csv";
    earlier = tune::read_results(read_text(file), file).rows;
  }
  if (config.target.is_ours()) check_first_trial(face, config);
  const auto [points, most, each] = tune::forecast(searching, search, earlier);
  if (face.json) {
    Json json = {{"schema", "stoker.tune.dry_run/1"}, {"stoker_version", kVersion}, {"dry_run", true},
                 {"target", config.target.text()},    {"search", config.search},    {"points", Json::array()}};
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
  std::string out = fmt::format("{}: {} {}, search {}\n", config.target.text(), points.size(),
                                points.size() == 1 ? "point" : "points", config.search);
  for (const Point& point : points) out += "  " + tune::text(point) + "\n";
  out += each ? fmt::format("time: at most {} more trials of about {}: {}\n", most, duration_text(*each),
                            duration_text(*each * static_cast<double>(most)))
              : fmt::format("time: at most {} trials, each with {} + {} steps and its start, none longer than {}\n",
                            most, arguments.text("--warmup-steps"), arguments.text("--bench-steps"),
                            arguments.text("--deadline"));
  answer(printable_lines(out));
  return 0;
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

int run_tune(const Arguments& arguments) {
  const Face face = make_face(arguments, arguments.text("--color"));
  if (arguments.has("--replay")) return replay(arguments, face);
  const bool described = !arguments.operands().empty() || !arguments.command().empty();
  tune::RunConfig config;
  if (arguments.has("--resume") && !described) {
    refuse(arguments, "a run that is resumed",
           {"--grid",       "--grid-file",  "--set",         "--out",         "--class-subset", "--class-subset-seed",
            "--class-list", "--subset",     "--subset-seed", "--inflate",     "--search",       "--seed",
            "--step-ms",    "--with",       "--python",      "--transform",   "--dtype",        "--image-color",
            "--storage",    "--shuffle",    "--label",       "--workload",    "--config",       "--template",
            "--steps-from", "--rate-regex", "--bench-time",  "--bench-steps", "--warmup-steps", "--effective-batch",
            "--log-pattern"});
    config = tune::read_config(arguments.text("--resume"));
  } else {
    config = config_of(arguments);
  }
  const tune::Target& target = config.target;
  check_apply(arguments, target.config_file);
  const tune::RunLimits limits = limits_of(arguments);
  tune::check_run(config, limits);
  const std::chrono::nanoseconds time_limit =
      arguments.has("--time-limit") ? arguments.duration("--time-limit") : std::chrono::nanoseconds(0);
  const auto began = std::chrono::steady_clock::now();  // the look at the job counts, too
  const auto is_over = [&] { return time_limit.count() > 0 && std::chrono::steady_clock::now() - began >= time_limit; };
  const std::optional<tune::JobLook> look =
      arguments.has("--resume") ? std::nullopt : look_first(arguments, face, config, limits, is_over);
  const tune::Grid grid = config.grid();
  if (target.is_ours()) (void)first_request(config);
  const tune::SearchOptions searching = tune::search_options(config, limits);
  const auto search = tune::make_search(config, searching);
  if (arguments.has("--dry-run")) return dry_run(arguments, face, config, searching, *search);

  TuneReport report;
  const auto note = [&](const std::vector<Text>& texts) {
    for (const Text& text : texts) report.notes.push_back(in_flags(text, arguments.verb()));
  };
  note(tune::notes_before(config, grid));
  if (!face.json) {
    for (const std::string& text : report.notes) say(printable_lines("note: " + text + "\n"));
  }
  config.environment = tune::environment_of(target);
  const tune::RunData data = tune::open_run_data(
      config, [&](const std::string& address, const dataset::OpenOptions& how) { return scan(face, address, how); });
  note(data.notes);
  config.data = tune::facts_of(data.data);
  tune::check_batches(config, data);
  tune::RunFolder folder =
      arguments.has("--resume")
          ? tune::RunFolder::resume(arguments.text("--resume"), config)
          : tune::RunFolder::make(arguments.has("--out") ? arguments.text("--out") : new_folder(), config);
  tune::write_subset(config, data, folder.path());
  watch_for_termination();  // so that no trial is left behind
  const bool quiet = face.json || arguments.has("--quiet");
  TuneScreen screen(face, quiet);
  tune::TunerOptions options;
  if (time_limit.count() > 0) {
    const auto left = time_limit - (std::chrono::steady_clock::now() - began);
    options.time_limit = std::max<std::chrono::nanoseconds>(left, std::chrono::nanoseconds(1));
  }
  options.interrupted = [&] {
    screen.tick();
    return interrupted();
  };
  options.trial = [&](const Point& point, const std::string& place) {
    return tune::trial_options(config, limits, point, place, own_program());
  };
  options.begun = [&](const tune::Ask& ask, std::uint64_t trial) { screen.begin(ask, trial, search->at_most()); };
  options.ended = [&](const tune::Ask& ask, const tune::Row& row, bool from_before) {
    screen.end(ask, row, from_before);
  };
  if (!quiet && look) say_grid(*look, config, searching, *search);
  if (!quiet)
    say(printable_lines(fmt::format("tuning {}: {} {}, search {}; rows go to {}/results.csv\n", target.text(),
                                    grid.size(), grid.size() == 1 ? "point" : "points", config.search, folder.path())));
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
  note(tune::notes_after(config, report.choice, report.rows));
  if (std::string said = others.note(); !said.empty()) report.notes.push_back(std::move(said));
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
  add_change(config, look, report);
  folder.write_results(report.choice, facts_of(report));
  report::write_reports(folder.path(), report.unfinished, report.notes);
  if (tuned.finish == tune::Finish::user_error) {
    if (!face.json) say(printable_lines(last_lines(tuned.failed_trial + "/stderr", 8)));
    throw Error(ErrorKind::usage,
                fmt::format("a trial failed, and others would fail in the same way: {}", tuned.failure->cause),
                format_text("{}{}what it printed is in {}", tuned.failure->remedy,
                            tuned.failure->remedy.empty() ? "" : "; ", tuned.failed_trial));
  }
  const bool was_interrupted = tuned.finish == tune::Finish::interrupted;
  const int code = finish(arguments, face, report, target, !was_interrupted);
  return was_interrupted ? interruption_code() : code;
}

}  // namespace

const Verb& tune_verb() {
  static const Verb verb = {
      "tune",
      "try many settings, safely, and choose the cheapest that is as good as the best",
      "[TARGET] [ADDRESS]",
      "data for our own loader; or module:function or file.py:function, and its data; or a command behind --",
      {{"stoker tune data/train --transform rrc:224 --grid num_workers=1,2,4",
        "find the number of workers for Stoker's own loader"},
       {"stoker tune train.py:build --grid batch_size=32,64 --grid num_workers=0,4,8",
        "tune a function that takes a dict of knobs and returns (loader, step)"},
       {"stoker tune stoker.targets:image_folder data/train --grid num_workers=1,2,4",
        "tune a PyTorch DataLoader over images; also ct_slices, wav_folder, vit"},
       {"stoker tune -- python train.py", "tune an unchanged PyTorch job: Stoker sets the arguments of its DataLoader"},
       {"stoker tune --grid workers=0,4,8 -- python train.py -j {workers}", "the same for knobs of its command line"},
       {"stoker tune --config train.yaml --set training.workers=1,4,6 -- python train.py {config}",
        "tune knobs of a file: each trial gets a copy of it"},
       {"stoker tune --replay results.csv --json", "choose from rows that were measured before"}},
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
         option_flag("where"),
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
        {{"--loader", "FILE:LINE", "",
          "of a command: the DataLoader to tune, by where the job makes it; without: the one that trains"},
         {"--config", "FILE", "",
          "a .yaml, .json or .toml file; each trial gets a copy with the keys of --set changed, named by {config}"},
         {"--set", "KEY=V,V", "",
          "values of a dotted key of that file, such as training.workers=1,4,6, or of a literal in a Python file of "
          "the "
          "command, such as builder.py:cpu_max_workers=4,8; again for each"},
         {"--template", "FILE", "", "a text file with {knob} in it; each trial gets a copy, named by {template}"},
         {"--steps-from", "WHERE", "auto", "hook (torch DataLoaders), output (printed rates) or reports (JSON lines)"},
         {"--rate-regex", "REGEX", "", "finds samples per second in what it prints: its first group"},
         {"--log-pattern", "REGEX", "",
          "the same by named groups, as in `stoker measure`: 'took (?<step_s>[0-9.]+)'; step_ms and steps_per_s times "
          "the batch size, samples_per_s, images_per_s"}}},
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
         {"--apply", "FILE", "",
          "write the chosen knobs as .json, .yaml or .py keyword arguments; the file of --config is changed in place, "
          "with a backup beside it"},
         {"--replay", "FILE", "", "choose from recorded rows, ours or others'"},
         {"--map", "OURS=THEIRS", "",
          "of --replay: the file's column for one of ours, such as images_per_s=throughput"},
         {"--force", "", "", "overwrite the file of --apply"}}},
       common_flags()},
      nullptr,
      run_tune,
      false,
      true};
  return verb;
}

}  // namespace stoker::cli
