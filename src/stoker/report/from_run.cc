#include "stoker/report/from_run.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stoker/report/findings.h"
#include "stoker/report/run_view.h"
#include "stoker/report/settings.h"
#include "stoker/report/words.h"

namespace stoker::report {
namespace {

using tune::Measured;
using tune::Row;
using tune::Status;

constexpr std::size_t kMostCurves = 5, kMostBars = 8, kMostTrials = 400;

double x_of(const Measured& point, const std::string& knob) {
  return tune::number_of(*point.point, knob).value_or(0);
}

Curve curve_of(const RunView& view, const Measured& from, std::string name) {
  Curve curve{std::move(name), {}};
  for (const Measured* point : view.along(from, view.x_knob)) {
    if (point->ok.empty()) continue;
    Mark mark{.x = x_of(*point, view.x_knob), .y = view.rate(*point), .tip = view.tip(*point)};
    if (point == view.best) mark.label = "best";
    if (point == view.chosen) mark.label = point == view.best ? "best, chosen" : "chosen";
    curve.marks.push_back(std::move(mark));
  }
  return curve;
}

std::string others_text(const RunView& view, const tune::Point& point) {
  std::string text;
  for (const std::string& knob : view.run.knobs) {
    if (knob == view.x_knob) continue;
    if (const auto at = point.find(knob); at != point.end())
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", knob, at->second);
  }
  return text;
}

std::optional<LineChart> knee_chart(const RunView& view) {
  if (view.chosen == nullptr || view.x_knob.empty()) return std::nullopt;
  LineChart chart{.x_label = view.x_knob, .y_label = "samples/s"};
  std::string main = others_text(view, *view.chosen->point);
  chart.curves.push_back(curve_of(view, *view.chosen, "the choice"));
  if (chart.curves[0].marks.size() < 2) return std::nullopt;
  // Curves that differ from the chosen one in one knob; knobs with few values first.
  std::vector<std::string> knobs = view.run.knobs;
  std::erase(knobs, view.x_knob);
  std::stable_sort(knobs.begin(), knobs.end(), [&](const std::string& a, const std::string& b) {
    return view.values(a).size() < view.values(b).size();
  });
  for (const std::string& knob : knobs) {
    for (const Measured* point : view.along(*view.chosen, knob)) {
      if (point == view.chosen || chart.curves.size() >= kMostCurves) continue;
      Curve curve = curve_of(view, *point, fmt::format("{}={}", knob, point->point->find(knob)->second));
      if (curve.marks.size() > 1) chart.curves.push_back(std::move(curve));
    }
  }
  for (const Measured* point : view.along(*view.chosen, view.x_knob)) {
    if (!point->ok.empty() || point->last == Status::pruned) continue;
    chart.failed.emplace_back(x_of(*point, view.x_knob), glyph(point->last));
  }
  if (tune::role_of(view.x_knob) == "num_workers") chart.knee = view.run.choice.knee;
  if (view.best != nullptr && view.best != view.chosen) {
    chart.band = {0.98 * view.best->rate, view.best->rate};
  }
  if (!main.empty()) chart.note = fmt::format("The choice: {}. ", main);
  if (chart.band) chart.note += "The shaded band is what lies within 2 % of the best. ";
  const std::vector<Mark>& marks = chart.curves[0].marks;
  const bool has_intervals =
      std::all_of(marks.begin(), marks.end(), [](const Mark& mark) { return mark.y.low.has_value(); });
  chart.note += has_intervals ? "Bars are 95 % intervals." : "Where no bar is drawn, no interval was recorded.";
  return chart;
}

std::optional<HeatMap> heat_of(const RunView& view) {
  if (view.down_knob.empty()) return std::nullopt;
  HeatMap map{.down = view.down_knob,
              .across = view.across_knob,
              .rows = view.values(view.down_knob),
              .columns = view.values(view.across_knob)};
  map.cells.resize(map.rows.size(), std::vector<HeatCell>(map.columns.size()));
  std::vector<std::vector<const Measured*>> shown(map.rows.size(), std::vector<const Measured*>(map.columns.size()));
  bool has_others = false;
  for (const Measured& point : view.points) {
    const auto down = point.point->find(map.down), across = point.point->find(map.across);
    if (down == point.point->end() || across == point.point->end()) continue;
    const auto r =
        static_cast<std::size_t>(std::find(map.rows.begin(), map.rows.end(), down->second) - map.rows.begin());
    const auto c = static_cast<std::size_t>(std::find(map.columns.begin(), map.columns.end(), across->second) -
                                            map.columns.begin());
    HeatCell& cell = map.cells[r][c];
    const Measured*& before = shown[r][c];
    has_others = has_others || before != nullptr;
    cell.tip += (cell.tip.empty() ? "" : "\n") + view.tip(point);
    cell.is_best = cell.is_best || &point == view.best;
    cell.is_chosen = cell.is_chosen || &point == view.chosen;
    // The chosen or best point stands for its cell, else the fastest.
    const auto rank = [&](const Measured* one) {
      return one == nullptr       ? -2.0
             : one == view.chosen ? 1e300
             : one == view.best   ? 1e299
             : one->ok.empty()    ? -1.0
                                  : one->rate;
    };
    if (rank(&point) <= rank(before)) continue;
    before = &point;
    cell.rate = point.ok.empty() ? std::nullopt : std::optional(point.rate);
    cell.glyph = point.ok.empty() ? std::string(glyph(point.last)) : "";
  }
  map.note = "samples/s";
  if (has_others) {
    std::string others;
    for (const std::string& knob : view.run.knobs) {
      if (knob != map.down && knob != map.across && view.values(knob).size() > 1)
        others += (others.empty() ? "" : ", ") + knob;
    }
    map.note += fmt::format("; of points that differ in {} only, the fastest is shown", others);
  }
  return map;
}

SplitBar bar_of(const RunView& view, const Measured& point, std::string label) {
  SplitBar bar{std::move(label), {}};
  const Row& row = view.run.rows[point.row];
  const auto found = view.run.blocks.find(row.trial);
  if (found != view.run.blocks.end()) {
    double steps = 0;
    const auto sum = [&](std::optional<double> tune::Block::*part) {
      double seconds = 0;
      for (const tune::Block& block : found->second) seconds += (block.*part).value_or(0);
      return seconds;
    };
    for (const tune::Block& block : found->second) steps += block.steps;
    const bool is_split = std::all_of(found->second.begin(), found->second.end(), [](const tune::Block& block) {
      return block.compute_s && block.fetch_s && block.prep_s && block.handoff_s;
    });
    if (is_split && steps > 0) {
      bar.parts = {{Stage::compute, sum(&tune::Block::compute_s) / steps * 1e3},
                   {Stage::h2d, sum(&tune::Block::h2d_s) / steps * 1e3},
                   {Stage::fetch, sum(&tune::Block::fetch_s) / steps * 1e3},
                   {Stage::prep, sum(&tune::Block::prep_s) / steps * 1e3},
                   {Stage::handoff, sum(&tune::Block::handoff_s) / steps * 1e3}};
    }
  }
  if (bar.parts.empty() && row.compute_ms && row.data_ms) {
    bar.parts = {{Stage::compute, *row.compute_ms}, {Stage::h2d, row.h2d_ms.value_or(0)}, {Stage::wait, *row.data_ms}};
  }
  std::erase_if(bar.parts, [](const auto& part) { return part.second <= 0; });
  bar.note = row.verdict;
  return bar;
}

std::vector<const Measured*> points_to_show(const RunView& view) {
  if (view.chosen == nullptr) return {};
  std::vector<const Measured*> points;
  if (view.x_knob.empty()) {
    points = {view.chosen};
  } else {
    points = view.along(*view.chosen, view.x_knob);
  }
  std::erase_if(points, [](const Measured* point) { return point->ok.empty(); });
  while (points.size() > kMostBars) {  // thin out, but keep the chosen one
    for (std::size_t i = 1; i < points.size() && points.size() > kMostBars; ++i) {
      if (points[i] != view.chosen) points.erase(points.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  if (view.best != nullptr && std::find(points.begin(), points.end(), view.best) == points.end())
    points.push_back(view.best);
  return points;
}

void add_split(const RunView& view, Report& report) {
  for (const Measured* point : points_to_show(view)) {
    std::string label = view.x_knob.empty() || !same_but(*point->point, *view.chosen->point, view.x_knob)
                            ? tune::text(*point->point)
                            : fmt::format("{}={}", view.x_knob, point->point->find(view.x_knob)->second);
    if (point == view.chosen) label += " (chosen)";
    if (point == view.best && view.best != view.chosen) label += " (best)";
    SplitBar bar = bar_of(view, *point, std::move(label));
    if (!bar.parts.empty()) report.split.push_back(std::move(bar));
  }
  if (report.split.empty()) return;
  report.split_note = "Compute is the step itself; all else is time in which the accelerator waited for data.";
}

void add_timeline(const RunView& view, Report& report) {
  if (view.chosen == nullptr) return;
  const Row& row = view.run.rows[view.chosen->row];
  const auto found = view.run.blocks.find(row.trial);
  if (found == view.run.blocks.end()) return;
  Timeline line{.label = fmt::format("Trial {}, the chosen settings", row.trial)};
  double at = 0;
  bool knows_anything = false;
  for (const tune::Block& block : found->second) {
    if (!(block.seconds > 0)) continue;
    TimePoint point{.from_s = at, .to_s = at + block.seconds, .ready = block.queue_depth};
    if (block.compute_s) point.compute = std::clamp(*block.compute_s / block.seconds, 0.0, 1.0);
    knows_anything = knows_anything || point.ready || point.compute;
    at += block.seconds;
    line.points.push_back(point);
  }
  line.note = "Each stretch is one block of steps after the warm-up, with the queue depth reported at its end.";
  if (knows_anything && line.points.size() > 1) report.timelines.push_back(std::move(line));
}

std::optional<LineChart> memory_chart(const RunView& view, const std::string& knob,
                                      std::optional<std::uint64_t> Row::*field, const std::string& what) {
  if (view.chosen == nullptr || knob.empty()) return std::nullopt;
  LineChart chart{.x_label = knob, .y_label = what, .unit = Unit::bytes};
  Curve curve{what, {}};
  for (const Measured* point : view.along(*view.chosen, knob)) {
    if (point->ok.empty() || !tune::number_of(*point->point, knob)) continue;
    std::uint64_t most = 0;
    for (const std::size_t i : point->ok) most = std::max(most, (view.run.rows[i].*field).value_or(0));
    if (most == 0) continue;
    curve.marks.push_back(
        {.x = x_of(*point, knob),
         .y = {.value = static_cast<double>(most)},
         .tip = fmt::format("{}\n{}: {}", tune::text(*point->point), what, byte_text(static_cast<double>(most))),
         .label = point == view.chosen ? "chosen" : ""});
  }
  if (curve.marks.size() < 2) return std::nullopt;
  chart.curves.push_back(std::move(curve));
  return chart;
}

void add_memory(const RunView& view, Report& report) {
  const tune::Environment machine =
      view.run.config ? view.run.config->environment.value_or(tune::Environment()) : tune::Environment();
  const std::string batch = view.values("batch_size").size() > 1 ? "batch_size" : view.x_knob;
  std::optional<LineChart> host = memory_chart(view, view.x_knob, &Row::host_peak_bytes, "host memory, peak");
  if (host) {
    if (const double limit = static_cast<double>(machine.memory_bytes.value_or(0)); limit > 0) {
      host->limit = limit;
      host->limit_label = fmt::format("limit {}", byte_text(limit));
      const double most = std::max_element(host->curves[0].marks.begin(), host->curves[0].marks.end(),
                                           [](const Mark& a, const Mark& b) { return a.y.value < b.y.value; })
                              ->y.value;
      host->note = fmt::format("All processes of a trial together (PSS); at most {} of the {} that the machine allows.",
                               byte_text(most), byte_text(limit));
    } else {
      host->note = "All processes of a trial together (PSS). The machine's limit is not recorded.";
    }
    report.memory.push_back(std::move(*host));
  }
  for (const auto& [field, what] : {std::pair(&Row::device_reserved_bytes, "device memory, reserved"),
                                    std::pair(&Row::device_allocated_bytes, "device memory, allocated")}) {
    std::optional<LineChart> device = memory_chart(view, batch, field, what);
    if (!device) continue;
    if (const double limit = static_cast<double>(machine.device_memory_bytes.value_or(0)); limit > 0) {
      device->limit = limit;
      device->limit_label = fmt::format("limit {}", byte_text(limit));
    } else {
      device->note = "The device's limit is not recorded.";
    }
    report.memory.push_back(std::move(*device));
    break;
  }
}

Table choice_table(const RunView& view) {
  const bool is_one = view.best == view.chosen;
  Table table{.title = "", .header = {"", is_one ? "chosen, and best" : "chosen"}, .text_columns = 1};
  std::vector<const Measured*> shown = {view.chosen};
  if (!is_one && view.best != nullptr) {
    table.header.emplace_back("best");
    shown.push_back(view.best);
  }
  const auto add = [&](const std::string& what, auto text_of) {
    std::vector<std::string> cells = {what};
    bool is_known = false;
    for (const Measured* point : shown) {
      cells.push_back(text_of(*point));
      is_known = is_known || !cells.back().empty();
      if (cells.back().empty()) cells.back() = "not recorded";
    }
    if (is_known) table.rows.push_back(std::move(cells));
  };
  for (const std::string& knob : view.run.knobs) {
    add(knob, [&](const Measured& point) {
      const auto at = point.point->find(knob);
      return at == point.point->end() ? std::string() : at->second;
    });
  }
  const auto row_of = [&](const Measured& point) -> const Row& { return view.run.rows[point.row]; };
  add("samples/s", [&](const Measured& point) { return per_second(point.rate); });
  add("95 % interval", [&](const Measured& point) {
    const Figure figure = view.rate(point);
    return figure.low ? fmt::format("{} to {}", per_second(*figure.low), per_second(*figure.high)) : "not recorded";
  });
  add("trials", [&](const Measured& point) { return fmt::format("{}", point.ok.size()); });
  add("step", [&](const Measured& point) { return row_of(point).step_ms ? milliseconds(*row_of(point).step_ms) : ""; });
  add("verdict", [&](const Measured& point) {
    return row_of(point).verdict.empty() ? row_of(point).bound : row_of(point).verdict;
  });
  add("ready batches, mean", [&](const Measured& point) {
    return row_of(point).queue_depth ? fmt::format("{:.1f}", *row_of(point).queue_depth) : "";
  });
  add("host memory, peak", [&](const Measured& point) { return point.host_bytes ? byte_text(*point.host_bytes) : ""; });
  add("device memory, allocated", [&](const Measured& point) {
    const auto bytes = row_of(point).device_allocated_bytes;
    return bytes ? byte_text(static_cast<double>(*bytes)) : "";
  });
  return table;
}

Table trials_table(const RunView& view) {
  Table table{.title = ""};
  table.header = {"trial"};
  for (const std::string& knob : view.run.knobs) table.header.push_back(knob);
  for (const char* column : {"status", "samples/s", "95 % interval", "step", "verdict", "host memory"})
    table.header.emplace_back(column);
  for (const Row& row : view.run.rows) {
    if (table.rows.size() == kMostTrials) break;
    std::vector<std::string> cells = {fmt::format("{}", row.trial)};
    for (const std::string& knob : view.run.knobs) {
      const auto at = row.knobs.find(knob);
      cells.push_back(at == row.knobs.end() ? "" : at->second);
    }
    cells.push_back(row.status == Status::ok ? "ok" : fmt::format("{} {}", glyph(row.status), name(row.status)));
    cells.push_back(row.ok() ? per_second(*row.images_per_s) : "");
    cells.push_back(row.ok() && row.ci_low && row.ci_high
                        ? fmt::format("{} to {}", per_second(*row.ci_low), per_second(*row.ci_high))
                        : "");
    cells.push_back(row.step_ms ? milliseconds(*row.step_ms) : "");
    cells.push_back(row.verdict.empty() ? row.bound : row.verdict);
    cells.push_back(row.host_peak_bytes ? byte_text(static_cast<double>(*row.host_peak_bytes)) : "");
    table.rows.push_back(std::move(cells));
  }
  // Columns that nothing is known of would only be wide.
  for (std::size_t column = table.header.size(); column-- > 0;) {
    if (std::any_of(table.rows.begin(), table.rows.end(), [&](const auto& row) { return !row[column].empty(); }))
      continue;
    table.header.erase(table.header.begin() + static_cast<std::ptrdiff_t>(column));
    for (auto& row : table.rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
  }
  if (view.run.rows.size() > kMostTrials) {
    table.note = fmt::format("The first {} of {} trials; results.csv has all.", kMostTrials, view.run.rows.size());
  }
  return table;
}

}  // namespace

std::vector<std::uint64_t> trials_to_show(const tune::RecordedRun& run) {
  const RunView view(run);
  std::vector<std::uint64_t> trials;
  for (const Measured* point : points_to_show(view)) trials.push_back(run.rows[point->row].trial);
  return trials;
}

Report from_run(const tune::RecordedRun& run) {
  const RunView view(run);
  Report report;
  describe(view, report);      // title, context, configuration, environment, commands
  add_findings(view, report);  // headline, tiles, outcomes, findings, reasons
  report.knee = knee_chart(view);
  report.heat = heat_of(view);
  add_split(view, report);
  add_timeline(view, report);
  add_memory(view, report);
  if (view.chosen != nullptr) report.choice = choice_table(view);
  if (!run.rows.empty()) report.trials = trials_table(view);
  return report;
}

}  // namespace stoker::report
