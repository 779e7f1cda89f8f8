#include "report_files.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/hash.h"
#include "stoker/base/json.h"
#include "stoker/base/version.h"
#include "stoker/os/file.h"
#include "stoker/report/from_plan.h"
#include "stoker/report/words.h"

#include "files.h"

namespace stoker::cli {
namespace {

constexpr double kFastest = 1e12, kLongestMs = 1e12;
constexpr std::string_view kSeal = "<!-- stoker report ";

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

std::string without_slash(std::string place) {
  while (place.size() > 1 && place.back() == '/') place.pop_back();
  return place;
}

Json read_json(const std::string& file) {
  return Json::parse(read_text(file), file);
}

Json read_json_if_there(const std::string& file) {
  return exists(file) ? read_json(file) : Json(nullptr);
}

std::vector<std::string> files_of(const std::string& folder, std::initializer_list<const char*> names) {
  std::vector<std::string> files;
  for (const char* name : names) {
    if (exists(folder + "/" + name)) files.emplace_back(name);
  }
  return files;
}

std::size_t count_folders(const std::string& folder) {
  std::error_code ignored;
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) count += entry.is_directory(ignored);
  return count;
}

// Blocks of steps that a trial reported, without the warm-up. A line that is no report counts for nothing.
std::vector<tune::Block> read_blocks(const std::string& file) {
  std::vector<tune::Block> blocks;
  const std::string text = read_text(file);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const Json json = Json::parse_or_null(std::string_view(text).substr(at, end - at));
    at = end + 1;
    if (const std::optional<tune::Block> block = tune::block_of(json); block && !block->is_warmup)
      blocks.push_back(*block);
  }
  return blocks;
}

report::MeasuredJob read_job(const std::string& folder) {
  report::MeasuredJob job{.place = folder, .answer = read_json(folder + "/measure.json")};
  job.files = files_of(folder, {"measure.json", "steps.csv"});
  if (exists(folder + "/steps.csv")) job.steps_csv = read_text(folder + "/steps.csv");
  return job;
}

enum class Kind : std::uint8_t { rows, job, plan };

Kind kind_of(const std::string& place) {
  if (!exists(place)) {
    throw Error(ErrorKind::not_found, fmt::format("cannot open `{}`: No such file or directory", place),
                "give the folder that `stoker tune` or `stoker measure --out` named");
  }
  if (!is_folder(place)) return place.ends_with(".json") ? Kind::plan : Kind::rows;
  if (exists(place + "/results.csv")) return Kind::rows;
  if (exists(place + "/measure.json")) return Kind::job;
  if (exists(place + "/plan.json")) return Kind::plan;
  throw Error(ErrorKind::not_found,
              fmt::format("there is nothing to report in `{}`: neither results.csv nor measure.json", place),
              "give the folder that `stoker tune` or `stoker measure --out` named, or a CSV file of rows");
}

// What no machine does: a figure in another unit, or columns that were mixed up.
void refuse_absurd(const tune::Row& row, const std::string& file) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::corrupt, fmt::format("cannot report `{}`: row {}: {}", file, row.trial, why),
                "correct the row or leave it out");
  };
  if (!row.ok()) return;
  const double rate = *row.images_per_s;
  if (rate <= 0) refuse("images_per_s is 0, yet its status is ok");
  if (rate > kFastest) refuse(fmt::format("images_per_s is {:g}, which nothing reaches", rate));
  for (const auto& [what, ms] : {std::pair("step_ms", row.step_ms), std::pair("data_ms", row.data_ms),
                                 std::pair("compute_ms", row.compute_ms)}) {
    if (ms && *ms > kLongestMs) refuse(fmt::format("{} is {:g}, which nothing reaches", what, *ms));
  }
  if (row.ci_low && row.ci_high && (rate < 0.999 * *row.ci_low || rate > 1.001 * *row.ci_high)) {
    refuse(fmt::format("images_per_s is {:g}, outside its own interval {:g} to {:g}", rate, *row.ci_low, *row.ci_high));
  }
}

// A search over the whole grid that stopped early: the folder knows.
std::string unfinished_of(const report::TuneRun& run) {
  if (!run.config.is_object() || run.config.value("search", Json(nullptr)) != "grid" || !run.config.contains("grid") ||
      !run.config.at("grid").is_object())
    return "";
  std::uint64_t all = 1;
  for (const auto& [knob, values] : run.config.at("grid").items()) all *= values.is_array() ? values.size() : 1;
  return run.choice.points < all ? fmt::format("{} of {} points have a row", run.choice.points, all) : "";
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

report::Side side_at(const std::string& place, const tune::ColumnMap& columns) {
  if (kind_of(place) == Kind::plan) {
    throw Error(ErrorKind::usage, fmt::format("cannot compare with `{}`: a plan was not measured", place),
                "compare folders of `stoker measure --out` or `stoker tune`");
  }
  return kind_of(place) == Kind::job ? report::side_of(read_job(place))
                                     : report::side_of(read_tune_run(place, columns));
}

std::string sealed(const std::string& text) {
  return fmt::format("{}{}{:016x} -->\n", text, kSeal, hash_text(text));
}

// A report as we wrote it, untouched.
bool is_own(const std::string& path) {
  const std::string text = read_text(path);
  const std::size_t at = text.rfind(kSeal);
  return at != std::string::npos && text == sealed(text.substr(0, at));
}

}  // namespace

report::TuneRun read_tune_run(const std::string& given, const tune::ColumnMap& columns) {
  const std::string place = without_slash(given);
  report::TuneRun run{.place = place, .is_folder = is_folder(place)};
  const std::string file = run.is_folder ? place + "/results.csv" : place;
  tune::Results results = tune::read_results(read_text(file), file, columns);
  run.knobs = std::move(results.knobs);
  run.rows = std::move(results.rows);
  for (const tune::Row& row : run.rows) refuse_absurd(row, file);
  run.notes = std::move(results.notes);
  run.choice = tune::choose(run.rows);
  if (!run.is_folder) return run;
  if (run.rows.empty()) {
    const std::size_t trials = count_folders(place + "/trials");
    if (trials > 0) {
      run.notes.push_back(fmt::format(
          "`{}` has no row, but `{}/trials` has {}: the file was cut, or no trial had ended when the run was stopped",
          file, place, report::plural(trials, "folder")));
    }
  }
  run.config = read_json_if_there(place + "/config.json");
  run.subset = read_json_if_there(place + "/subset.json");
  run.files = files_of(place, {"results.csv", "results.json", "config.json", "subset.json", "plan.json", "trials"});
  run.unfinished = unfinished_of(run);
  for (const std::uint64_t trial : report::trials_to_show(run)) {
    const std::string steps = fmt::format("{}/trials/{:04d}/steps.jsonl", place, trial);
    if (!exists(steps)) continue;
    std::vector<tune::Block> blocks = read_blocks(steps);
    if (!blocks.empty()) run.blocks[trial] = std::move(blocks);
  }
  return run;
}

report::Report read_report(const ReportOptions& options) {
  std::vector<std::string> places, sides;
  for (const std::string& place : options.places) places.push_back(without_slash(place));
  if (places.size() > 1) sides = places;
  if (!options.before.empty() && !options.after.empty())
    sides = {without_slash(options.before), without_slash(options.after)};
  const std::string& main = places.empty() ? sides.back() : places.back();

  report::Report report;
  std::string plan = main + "/plan.json";
  switch (kind_of(main)) {
    case Kind::job:
      report = report::from_measure(read_job(main));
      break;
    case Kind::plan:
      if (!is_folder(main)) plan = main;
      report = report::from_plan(read_json(plan), plan);
      break;
    case Kind::rows: {
      report::TuneRun run = read_tune_run(main, options.columns);
      if (!options.unfinished.empty()) run.unfinished = options.unfinished;
      report = report::from_run(run);
      break;
    }
  }
  if (kind_of(main) != Kind::plan && is_folder(main) && exists(plan)) report::add_plan(read_json(plan), plan, report);
  if (!sides.empty()) {
    std::vector<report::Side> all;
    for (const std::string& side : sides) all.push_back(side_at(side, options.columns));
    report.comparison = report::compare(all);
    if (!report.comparison->sentence.empty()) {
      report.findings.insert(report.findings.begin(), fmt::format("`{}` is compared with `{}`; of the former: {}",
                                                                  sides.back(), sides.front(), report.headline));
      report.headline = report.comparison->sentence;
    }
    std::string again = "stoker report";
    for (const std::string& place : options.places) again += " " + report::shell_word(place);
    if (!options.before.empty()) {
      again +=
          fmt::format(" --before {} --after {}", report::shell_word(options.before), report::shell_word(options.after));
    }
    if (!report.commands.empty()) report.commands.back().text = again;
  }
  report.made = fmt::format("Written {} by stoker {}.", now_text(), kVersion);
  return report;
}

void write_report(const std::string& path, const std::string& text, bool force) {
  if (!force && exists(path) && !is_own(path)) {
    throw Error(ErrorKind::usage, fmt::format("`{}` is there already and is not as `stoker report` wrote it", path),
                "choose another name with --out, or add --force");
  }
  os::write_file(path, sealed(text));
}

void write_reports(const std::string& folder, const std::string& unfinished, std::vector<std::string>& notes) {
  try {
    const report::Report report =
        read_report({.places = {folder}, .before = {}, .after = {}, .columns = {}, .unfinished = unfinished});
    os::write_file(folder + "/report.md", sealed(report::to_markdown(report)));
    os::write_file(folder + "/report.html", sealed(report::to_html(report)));
  } catch (const Error& error) {
    notes.push_back(fmt::format("there is no report: {}", error.message()));
  }
}

}  // namespace stoker::cli
