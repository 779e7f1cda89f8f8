// The step split, and what happened over time.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stoker/report/charts.h"
#include "stoker/report/svg.h"
#include "stoker/report/words.h"

namespace stoker::report {
namespace {

std::string style_of(Stage stage) {
  return fmt::format("s-{}", stage == Stage::handoff ? "handoff" : name(stage));
}

// A line that holds from the start of each point to its end, and breaks where `y_of` knows nothing.
template <typename Value>
std::string steps_path(const std::vector<TimePoint>& points, double left, double right, double seconds, Value y_of) {
  std::string line;
  const auto x_of = [&](double s) { return number(left + (right - left) * s / seconds); };
  bool is_open = false;
  for (const TimePoint& point : points) {
    const auto y = y_of(point);
    if (!y) {
      is_open = false;
      continue;
    }
    line += fmt::format("{}{} {}H{}", is_open ? "L" : "M", x_of(point.from_s), number(*y), x_of(point.to_s));
    is_open = true;
  }
  return line;
}

// As many points as a image can show: neighbours are put together, each with the weight of its time.
std::vector<TimePoint> thinned(const std::vector<TimePoint>& points, std::size_t most) {
  if (points.size() <= most) return points;
  std::vector<TimePoint> out;
  for (std::size_t i = 0; i < most; ++i) {
    const std::size_t from = i * points.size() / most, to = (i + 1) * points.size() / most;
    TimePoint sum{.from_s = points[from].from_s, .to_s = points[to - 1].to_s};
    double ready = 0, ready_s = 0, compute = 0, compute_s = 0;
    for (std::size_t j = from; j < to; ++j) {
      const double seconds = std::max(1e-12, points[j].to_s - points[j].from_s);
      if (points[j].ready) ready += *points[j].ready * seconds, ready_s += seconds;
      if (points[j].compute) compute += *points[j].compute * seconds, compute_s += seconds;
    }
    if (ready_s > 0) sum.ready = ready / ready_s;
    if (compute_s > 0) sum.compute = compute / compute_s;
    out.push_back(sum);
  }
  return out;
}

}  // namespace

std::string split_chart(const std::vector<SplitBar>& bars, double width) {
  const double row = 54, bar_height = 20, text = width < 500 ? 11 : 12;
  double most = 0;
  for (const SplitBar& bar : bars) most = std::max(most, bar.total_ms());
  std::string says = "Time per step.";
  for (const SplitBar& bar : bars) {
    says += fmt::format(" {}: {}", bar.label, milliseconds(bar.total_ms()));
    for (const auto& [stage, ms] : bar.parts) says += fmt::format(", {} {}", name(stage), milliseconds(ms));
    says += ".";
  }
  Svg svg(width, row * static_cast<double>(bars.size()), "chart", says);
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const SplitBar& bar = bars[i];
    const double y = row * static_cast<double>(i), total = bar.total_ms();
    const std::string all = fmt::format("{} per step", milliseconds(total));
    std::string label = bar.label;
    const double room = width - text_width(all, 13) - 16;
    while (text_width(label, 13) > room && label.size() > 4) {
      label = label.substr(0, label.size() - (label.ends_with("…") ? 4 : 1));
      while (!label.empty() && (static_cast<unsigned char>(label.back()) & 0xC0) == 0x80) label.pop_back();
      label += "…";
    }
    svg.text(0, y + 14, Anchor::start, "bar-name", label);
    svg.text(width, y + 14, Anchor::end, "bar-total", all);
    double x = 0;
    for (const auto& [stage, ms] : bar.parts) {
      const double w = most > 0 ? width * ms / most : 0;
      if (w <= 0) continue;
      const std::string tip = fmt::format("{}\n{}: {} per step, {} of it", bar.label, name(stage), milliseconds(ms),
                                          percent(ms / std::max(total, 1e-300)));
      const double drawn = std::max(0.6, w - 1);  // a hairline between parts
      svg.box(x, y + 22, drawn, bar_height, "part " + style_of(stage), tip);
      svg.box(x, y + 22, drawn, bar_height, "grain g-" + style_of(stage).substr(2));
      const std::string inside = fmt::format("{} {}", name(stage), percent(ms / std::max(total, 1e-300)));
      const std::string brief(name(stage));
      for (const std::string& words : {inside, brief}) {
        if (text_width(words, text) + 12 > w) continue;
        svg.text(x + 6, y + 22 + bar_height / 2 + 4, Anchor::start, "part-text n-" + style_of(stage).substr(2), words);
        break;
      }
      x += w;
    }
  }
  return std::move(svg).whole();
}

std::string timeline_chart(const Timeline& line, double width) {
  const bool is_narrow = width < 500;
  const double left = 44, right = width - 10, tall = is_narrow ? 84 : 110;
  const std::vector<TimePoint> points = thinned(line.points, 720);
  bool has_compute = false, has_ready = false;
  double deepest = 0, seconds = 0;
  for (const TimePoint& point : points) {
    has_compute = has_compute || point.compute;
    has_ready = has_ready || point.ready;
    deepest = std::max(deepest, point.ready.value_or(0));
    seconds = std::max(seconds, point.to_s);
  }
  if (!(seconds > 0)) seconds = 1;
  const double first = 26, second = has_compute ? first + tall + 42 : first;
  const double bottom = (has_ready ? second : first) + tall;
  Svg svg(width, bottom + 44, "chart",
          fmt::format("{}: compute share and ready batches over {} s.", line.label, short_number(seconds)));
  const auto x_of = [&](double s) { return left + (right - left) * s / seconds; };
  if (has_compute) {
    svg.text(0, 12, Anchor::start, "axis-name", "device activity: share of the time in compute");
    for (const double share : {0.0, 0.5, 1.0}) {
      const double y = first + tall * (1 - share);
      svg.line(left, y, right, y, share == 0 ? "axis" : "grid");
      svg.text(left - 8, y + 4, Anchor::end, "tick", fmt::format("{:.0f} %", 100 * share));
    }
    for (const TimePoint& point : points) {
      if (!point.compute) continue;
      const double share = std::clamp(*point.compute, 0.0, 1.0);
      svg.box(x_of(point.from_s), first + tall * (1 - share), x_of(point.to_s) - x_of(point.from_s) + 0.3, tall * share,
              "activity");
    }
    const auto y_of = [&](const TimePoint& point) -> std::optional<double> {
      if (!point.compute) return std::nullopt;
      return first + tall * (1 - std::clamp(*point.compute, 0.0, 1.0));
    };
    svg.path(steps_path(points, left, right, seconds, y_of), "activity-line");
  }
  if (has_ready) {
    const std::vector<double> marks = ticks(std::max(1.0, deepest), 3);
    svg.text(0, second - 14, Anchor::start, "axis-name", "queue depth: batches ready");
    for (const double mark : marks) {
      const double y = second + tall * (1 - mark / marks.back());
      svg.line(left, y, right, y, mark == 0 ? "axis" : "grid");
      svg.text(left - 8, y + 4, Anchor::end, "tick", short_number(mark));
    }
    const auto y_of = [&](const TimePoint& point) -> std::optional<double> {
      if (!point.ready) return std::nullopt;
      return second + tall * (1 - *point.ready / marks.back());
    };
    svg.path(steps_path(points, left, right, seconds, y_of), "depth-line");
  }
  double free_from = -1e9;
  for (const double mark : ticks(seconds, is_narrow ? 4 : 7)) {
    if (mark > seconds * 1.0001) break;
    const std::string text = short_number(mark);
    const double half = text_width(text, 12) / 2 + 4;
    svg.line(x_of(mark), bottom, x_of(mark), bottom + 4, "axis");
    if (x_of(mark) - half < free_from) continue;
    svg.text(std::min(x_of(mark), width - half), bottom + 19, Anchor::middle, "tick", text);
    free_from = x_of(mark) + half;
  }
  svg.text((left + right) / 2, bottom + 38, Anchor::middle, "axis-name", "seconds");
  for (const TimePoint& point : points) {
    std::string tip = fmt::format("{:.3g} to {:.3g} s", point.from_s, point.to_s);
    if (point.compute) tip += fmt::format("\ncompute {}", percent(*point.compute));
    if (point.ready) tip += fmt::format("\n{:.3g} batches ready", *point.ready);
    svg.box(x_of(point.from_s), first, x_of(point.to_s) - x_of(point.from_s), bottom - first, "reach", tip);
  }
  return std::move(svg).whole();
}

}  // namespace stoker::report
