#include "stoker/report/files.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/hash.h"
#include "stoker/base/json.h"
#include "stoker/base/shell.h"
#include "stoker/base/version.h"
#include "stoker/os/file.h"
#include "stoker/os/read_file.h"
#include "stoker/plan/answer_json.h"
#include "stoker/report/from_measure.h"
#include "stoker/report/from_plan.h"
#include "stoker/report/from_run.h"
#include "stoker/report/measure_json.h"
#include "stoker/report/words.h"

namespace stoker::report {
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
  return Json::parse(os::read_text(file), file);
}

// Folders of nodes below a folder into which each of them wrote its part of a measured job; by name.
std::vector<std::string> nodes_below(const std::string& place) {
  std::vector<std::string> nodes;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(place, ignored)) {
    if (os::exists(entry.path().string() + "/measure.json")) nodes.push_back(entry.path().string());
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

std::vector<MeasuredJob> read_nodes(const std::string& place) {
  std::vector<MeasuredJob> nodes;
  for (const std::string& folder : nodes_below(place)) nodes.push_back(read_measured_job(folder));
  return nodes;
}

enum class Kind : std::uint8_t { rows, job, nodes, plan };

Kind kind_of(const std::string& place) {
  if (!os::exists(place)) {
    throw Error(ErrorKind::not_found, fmt::format("cannot open `{}`: No such file or directory", place),
                "give the folder that `stoker tune` or `stoker measure --out` named");
  }
  if (!is_folder(place)) return place.ends_with(".json") ? Kind::plan : Kind::rows;
  if (os::exists(place + "/results.csv")) return Kind::rows;
  if (os::exists(place + "/measure.json")) return Kind::job;
  if (!nodes_below(place).empty()) return Kind::nodes;
  if (os::exists(place + "/plan.json")) return Kind::plan;
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
  if (row.status != tune::Status::ok || !row.images_per_s) return;
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

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

Side side_at(const std::string& place, const tune::ColumnMap& columns) {
  if (kind_of(place) == Kind::plan) {
    throw Error(ErrorKind::usage, fmt::format("cannot compare with `{}`: a plan was not measured", place),
                "compare folders of `stoker measure --out` or `stoker tune`");
  }
  if (kind_of(place) == Kind::nodes) {
    throw Error(ErrorKind::usage, fmt::format("cannot compare with `{}`: it holds what several nodes measured", place),
                fmt::format("compare the folders of one node, such as `{}`", nodes_below(place).front()));
  }
  return kind_of(place) == Kind::job ? side_of(read_measured_job(place)) : side_of(read_run(place, columns));
}

std::string sealed(const std::string& text) {
  return fmt::format("{}{}{:016x} -->\n", text, kSeal, hash_text(text));
}

// A report as we wrote it, untouched.
bool is_own(const std::string& path) {
  const std::string text = os::read_text(path);
  const std::size_t at = text.rfind(kSeal);
  return at != std::string::npos && text == sealed(text.substr(0, at));
}

}  // namespace

tune::RecordedRun read_run(const std::string& given, const tune::ColumnMap& columns) {
  tune::RecordedRun run = tune::read_rows(without_slash(given), columns);
  for (const tune::Row& row : run.rows) refuse_absurd(row, run.rows_file());
  run.choice = tune::choose(run.rows);  // which needs rates that can be
  if (!run.is_folder) return run;
  if (run.rows.empty()) {
    const std::size_t trials = tune::count_trials(run);
    if (trials > 0) {
      run.notes.push_back(fmt::format(
          "`{}` has no row, but `{}/trials` has {}: the file was cut, or no trial had ended when the run was stopped",
          run.rows_file(), run.place, plural(trials, "folder")));
    }
  }
  tune::read_settings(run);
  run.files =
      tune::files_of(run.place, {"results.csv", "results.json", "config.json", "subset.json", "plan.json", "trials"});
  for (const std::uint64_t trial : trials_to_show(run)) {
    if (auto blocks = tune::read_blocks(run, trial); !blocks.empty()) run.blocks[trial] = std::move(blocks);
  }
  return run;
}

Report read_report(const ReportOptions& options) {
  std::vector<std::string> places, sides;
  for (const std::string& place : options.places) places.push_back(without_slash(place));
  if (places.size() > 1) sides = places;
  if (!options.before.empty() && !options.after.empty())
    sides = {without_slash(options.before), without_slash(options.after)};
  const std::string& main = places.empty() ? sides.back() : places.back();

  Report report;
  std::string plan = main + "/plan.json";
  switch (kind_of(main)) {
    case Kind::job:
      report = from_measure(read_measured_job(main));
      break;
    case Kind::nodes:
      report = from_nodes(read_nodes(main), main);
      break;
    case Kind::plan:
      if (!is_folder(main)) plan = main;
      report = from_plan(plan::parse_plan(read_json(plan), plan), plan);
      break;
    case Kind::rows: {
      tune::RecordedRun run = read_run(main, options.columns);
      if (!options.unfinished.empty()) run.unfinished = options.unfinished;
      report = from_run(run);
      break;
    }
  }
  if (kind_of(main) != Kind::plan && is_folder(main) && os::exists(plan))
    add_plan(plan::parse_plan(read_json(plan), plan), plan, report);
  if (!sides.empty()) {
    std::vector<Side> all;
    all.reserve(sides.size());
    for (const std::string& side : sides) all.push_back(side_at(side, options.columns));
    report.comparison = compare(all);
    if (!report.comparison->sentence.empty()) {
      report.findings.insert(report.findings.begin(), fmt::format("`{}` is compared with `{}`; of the former: {}",
                                                                  sides.back(), sides.front(), report.headline));
      report.headline = report.comparison->sentence;
    }
    std::string again = "stoker report";
    for (const std::string& place : options.places) again += " " + shell_word(place);
    if (!options.before.empty()) {
      again += fmt::format(" --before {} --after {}", shell_word(options.before), shell_word(options.after));
    }
    if (!report.commands.empty()) report.commands.back().text = again;
  }
  report.made = fmt::format("Written {} by stoker {}.", now_text(), kVersion);
  return report;
}

void write_report(const std::string& path, const std::string& text, bool force) {
  if (!force && os::exists(path) && !is_own(path)) {
    throw Error(ErrorKind::usage, fmt::format("`{}` is there already and is not as `stoker report` wrote it", path),
                format_text("choose another name with {}, or add {}", option("out"), option("force", "True")));
  }
  os::write_file(path, sealed(text));
}

void write_reports(const std::string& folder, const std::string& unfinished, std::vector<std::string>& notes) {
  try {
    const Report report =
        read_report({.places = {folder}, .before = {}, .after = {}, .columns = {}, .unfinished = unfinished});
    os::write_file(folder + "/report.md", sealed(to_markdown(report)));
    os::write_file(folder + "/report.html", sealed(to_html(report)));
  } catch (const Error& error) {
    notes.push_back(fmt::format("there is no report: {}", error.message()));
  }
}

}  // namespace stoker::report
