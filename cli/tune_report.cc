#include "tune_report.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/base/version.h"
#include "stoker/tune/measured.h"
#include "stoker/tune/run_folder.h"

namespace stoker::cli {
namespace {

using tune::Row;
using tune::Status;

std::string failures_text(const tune::Choice& choice) {
  std::string text;
  for (const auto& [status, count] : choice.failures) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name(status));
  }
  return text;
}

std::size_t tried(const tune::Choice& choice) {
  std::size_t count = choice.points;
  for (const Status status : {Status::pruned, Status::skipped_memory}) {
    if (const auto left = choice.failures.find(status); left != choice.failures.end()) count -= left->second;
  }
  return count;
}

}  // namespace

std::string rate_text(const Row& row) {
  if (!row.images_per_s) return "-";
  std::string text = format_rate(*row.images_per_s) + "/s";
  if (row.ci_low && row.ci_high && *row.images_per_s > 0) {
    text += fmt::format(" +-{:.1f} %", 50 * (*row.ci_high - *row.ci_low) / *row.images_per_s);
  }
  return text;
}

// What all runs of its point say together.
Row mean_of(const std::vector<Row>& rows, const Row& row) {
  Row mean = row;
  for (const tune::Measured& one : tune::measured(rows)) {
    if (*one.point != row.knobs || one.ok.size() < 2) continue;
    mean.images_per_s = one.rate;
    mean.ci_low = std::max(0.0, one.rate - one.half_width);
    mean.ci_high = one.rate + one.half_width;
  }
  return mean;
}

std::string heat_map(const std::vector<Row>& rows) {
  if (rows.empty()) return "";
  std::string down, across;
  for (const auto& [knob, word] : rows.front().knobs) {
    if (down.empty() && tune::role_of(knob) == "num_workers") down = knob;
    if (across.empty() && tune::role_of(knob) == "batch_size") across = knob;
  }
  for (const auto& [knob, word] : rows.front().knobs) {
    if (knob == down || knob == across) continue;
    if (down.empty()) {
      down = knob;
    } else if (across.empty()) {
      across = knob;
    }
  }
  std::vector<std::string> rows_of, columns;
  std::map<std::pair<std::string, std::string>, Row> cells;
  const auto note = [](std::vector<std::string>& list, const std::string& word) {
    if (std::find(list.begin(), list.end(), word) == list.end()) list.push_back(word);
  };
  for (const Row& row : rows) {
    const auto d = row.knobs.find(down), a = row.knobs.find(across);
    if (d == row.knobs.end() || a == row.knobs.end()) return "";
    note(rows_of, d->second);
    note(columns, a->second);
    const Row mean = mean_of(rows, row);
    const auto [cell, is_new] = cells.try_emplace({d->second, a->second}, mean);
    if (!is_new && mean.ok() && (!cell->second.ok() || *mean.images_per_s > *cell->second.images_per_s)) {
      cell->second = mean;
    }
  }
  if (rows_of.size() < 2 || columns.size() < 2) return "";
  const auto by_number = [](const std::string& a, const std::string& b) {
    const auto x = tune::number_of(a), y = tune::number_of(b);
    return x && y ? *x < *y : a < b;
  };
  std::sort(rows_of.begin(), rows_of.end(), by_number);
  std::sort(columns.begin(), columns.end(), by_number);
  std::vector<std::vector<std::string>> lines = {{fmt::format("{} \\ {}", down, across)}};
  for (const std::string& column : columns) lines[0].push_back(column);
  for (const std::string& word : rows_of) {
    lines.push_back({word});
    for (const std::string& column : columns) {
      const auto cell = cells.find({word, column});
      lines.back().push_back(cell == cells.end()                     ? "."
                             : cell->second.ok()                     ? format_rate(*cell->second.images_per_s)
                             : cell->second.status == Status::pruned ? "."
                                                                     : std::string(name(cell->second.status)));
    }
  }
  return table(lines, "  ");
}

std::string one_line(const tune::Ask& ask, const Row& row) {
  std::string text = fmt::format("  {:>3}  {:<44} {:>22}", row.trial, tune::text(row.knobs), rate_text(row));
  if (!row.verdict.empty()) text += "  " + row.verdict;
  if (row.status != Status::ok) text += fmt::format("  {}: {}", name(row.status), row.error.substr(0, 100));
  if (!ask.why.empty()) text += fmt::format("  ({})", ask.why);
  return text + "\n";
}

std::string to_text(const TuneReport& report, const Terminal& terminal) {
  const tune::Choice& choice = report.choice;
  std::string out;
  const auto row = [&](std::string_view label, std::string_view text) {
    out += labelled(terminal, label, 9, printable(text));
  };
  if (choice.chosen) {
    const Row chosen = mean_of(report.rows, report.rows[*choice.chosen]);
    out +=
        fmt::format("{} {}: {}\n", terminal.paint(Paint::bold, "stoker:"), tune::text(chosen.knobs), rate_text(chosen));
    row("why", choice.reason);
  } else {
    out += fmt::format("{} no point ran\n", terminal.paint(Paint::bold, "stoker:"));
  }
  if (!report.change.empty()) row("change", report.change);
  if (!report.apply.empty()) row("apply", report.apply);
  row("target", report.target);
  row("points", fmt::format("{} tried of {}, {} ok{}{}", tried(choice),
                            std::max<std::uint64_t>(report.grid_points, choice.points), choice.ok,
                            choice.failures.empty() ? "" : "; ", failures_text(choice)));
  if (choice.best && choice.best != choice.chosen) {
    const Row best = mean_of(report.rows, report.rows[*choice.best]);
    row("best", fmt::format("{}: {}, not measurably faster than the choice, or not enough to justify its cost",
                            tune::text(best.knobs), rate_text(best)));
  }
  if (choice.knee && choice.chosen) {
    const double workers = tune::number_of(report.rows[*choice.chosen].knobs, "num_workers").value_or(0);
    row("knee", fmt::format("{:g} workers{}", *choice.knee,
                            workers > *choice.knee ? ": each one beyond it brings little" : ""));
  }
  if (!report.unfinished.empty()) row("note", report.unfinished);
  for (const std::string& note : report.notes) row("note", note);
  if (!report.diff.empty()) out += "\n" + printable_lines(report.diff);
  const std::string map = heat_map(report.rows);
  if (!map.empty()) out += "\n" + map;
  if (!report.folder.empty()) out += "\n" + labelled(terminal, "files", 9, printable(report.folder));
  return out;
}

Json to_json(const TuneReport& report) {
  Json json = {{"schema", "stoker.tune/1"}, {"stoker_version", kVersion}, {"target", report.target}};
  json["folder"] = report.folder.empty() ? Json(nullptr) : Json(report.folder);
  json.update(facts_of(report));
  json["notes"] = report.notes;
  json.update(tune::to_json(report.choice, report.rows));
  return json;
}

Json facts_of(const TuneReport& report) {
  Json json;
  json["grid_points"] = report.grid_points;
  json["seconds"] = report.seconds;
  json["tuner_cpu_seconds"] = report.tuner_cpu_seconds;
  json["tuner_cpu_share"] = report.seconds > 0 ? Json(report.tuner_cpu_seconds / report.seconds) : Json(nullptr);
  if (!report.change.empty()) json["change"] = report.change;
  if (!report.diff.empty()) json["diff"] = report.diff;
  if (!report.apply.empty()) json["apply"] = report.apply;
  json["unfinished"] = report.unfinished.empty() ? Json(nullptr) : Json(report.unfinished);
  return json;
}

}  // namespace stoker::cli
