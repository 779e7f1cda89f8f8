#include "stoker/report/run_view.h"

#include <algorithm>

#include <fmt/format.h>

#include "stoker/report/words.h"

namespace stoker::report {
namespace {

using tune::Measured;
using tune::Point;

bool by_number(const std::string& a, const std::string& b) {
  const auto x = tune::number_of(a), y = tune::number_of(b);
  if (x && y) return *x < *y;
  return x.has_value() != y.has_value() ? x.has_value() : a < b;
}

}  // namespace

bool same_but(const Point& a, const Point& b, std::string_view knob) {
  Point x = a, y = b;
  if (const auto at = x.find(knob); at != x.end()) x.erase(at);
  if (const auto at = y.find(knob); at != y.end()) y.erase(at);
  return x == y;
}

RunView::RunView(const tune::RecordedRun& the_run) : run(the_run), points(tune::measured(the_run.rows)) {
  for (const Measured& point : points) {
    if (run.choice.chosen && *point.point == run.rows[*run.choice.chosen].knobs) chosen = &point;
    if (run.choice.best && *point.point == run.rows[*run.choice.best].knobs) best = &point;
  }
  const auto varies = [&](std::string_view knob) { return values(knob).size() > 1; };
  const auto is_numeric = [&](const std::string& knob) {
    const std::vector<std::string> all = values(knob);
    return std::all_of(all.begin(), all.end(), [](const std::string& word) {
      return tune::number_of(word).has_value() && word != "true" && word != "false";
    });
  };
  std::vector<std::string> varying;  // workers and batch size first, then those with most values
  for (const std::string& knob : run.knobs) {
    if (varies(knob)) varying.push_back(knob);
  }
  const auto weight = [&](const std::string& knob) {
    if (tune::role_of(knob) == "num_workers") return std::size_t{2'000'000};
    return tune::role_of(knob) == "batch_size" ? std::size_t{1'000'000} : values(knob).size();
  };
  std::stable_sort(varying.begin(), varying.end(),
                   [&](const std::string& a, const std::string& b) { return weight(a) > weight(b); });
  const auto numeric = std::find_if(varying.begin(), varying.end(), is_numeric);
  if (numeric != varying.end()) x_knob = *numeric;
  if (varying.size() >= 2) {
    down_knob = varying[0];
    across_knob = varying[1];
  }
}

Figure RunView::rate(const Measured& point) const {
  Figure figure{.value = point.rate};
  const tune::Row* const only = point.ok.size() == 1 ? &run.rows[point.ok[0]] : nullptr;
  if (only != nullptr && only->ci_low && only->ci_high) {  // as results.csv has it: it need not be symmetrical
    figure.low = *only->ci_low;
    figure.high = *only->ci_high;
  } else if (point.has_interval && !point.ok.empty()) {
    figure.low = std::max(0.0, point.rate - point.half_width);
    figure.high = point.rate + point.half_width;
  }
  return figure;
}

std::vector<std::string> RunView::values(std::string_view knob) const {
  std::vector<std::string> all;
  for (const Measured& point : points) {
    const auto at = point.point->find(knob);
    if (at != point.point->end() && std::find(all.begin(), all.end(), at->second) == all.end())
      all.push_back(at->second);
  }
  std::sort(all.begin(), all.end(), by_number);
  return all;
}

std::vector<const Measured*> RunView::along(const Measured& from, std::string_view knob) const {
  std::vector<const Measured*> all;
  for (const Measured& point : points) {
    if (point.point->contains(knob) && same_but(*point.point, *from.point, knob)) all.push_back(&point);
  }
  std::sort(all.begin(), all.end(), [&](const Measured* a, const Measured* b) {
    return by_number(a->point->find(knob)->second, b->point->find(knob)->second);
  });
  return all;
}

const Measured* RunView::at(const Point& point) const {
  const auto found =
      std::find_if(points.begin(), points.end(), [&](const Measured& one) { return *one.point == point; });
  return found == points.end() ? nullptr : &*found;
}

std::string RunView::tip(const Measured& point) const {
  std::string text = tune::text(*point.point);
  if (point.ok.empty()) {
    text += fmt::format("\n{}", name(point.last));
    for (const tune::Row& row : run.rows) {
      if (row.knobs != *point.point || row.error.empty()) continue;
      text += ": " + row.error.substr(0, 160);
      break;
    }
    return text;
  }
  text += "\n" + rate_text(rate(point));
  if (!point.has_interval) text += ", no interval recorded";
  text += point.ok.size() == 1 ? fmt::format("\ntrial {}", run.rows[point.row].trial)
                               : fmt::format("\nmean of {} trials", point.ok.size());
  if (point.has_failed) text += ", failed another time";
  return text;
}

}  // namespace stoker::report
