// Two or more runs side by side.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/report/from_measure.h"
#include "stoker/report/run_view.h"
#include "stoker/report/words.h"

namespace stoker::report {
namespace {

constexpr double kWorth = 0.02;  // of the rate
constexpr double kOneRun = 0.1;  // of the rate: what one short run may differ from the next by

// "3.2x (95 %: 3.0x to 3.4x)": the widest that both intervals allow; where one is not known, so is this.
std::string change_text(const Figure& before, const Figure& after) {
  if (!(before.value > 0) || !(after.value > 0)) return "";
  std::string text = ratio(after.value / before.value);
  const double low = after.low.value_or(after.value) / before.high.value_or(before.value);
  const double high = after.high.value_or(after.value) / std::max(1e-300, before.low.value_or(before.value));
  if (before.low && before.high && after.low && after.high)
    text += fmt::format(" (95 %: {} to {})", ratio(low), ratio(high));
  return text;
}

// "1.81x faster: from 275 to 498 samples/s (95 %: 1.70x to 1.93x).", or that nothing changed that can be told.
std::string gain_text(const Figure& before, const Figure& after) {
  const double times = after.value / before.value;
  const bool have_intervals = before.low && before.high && after.low && after.high;
  const bool overlap = have_intervals && *before.low <= *after.high && *after.low <= *before.high;
  const auto is_within = [&](double share) { return times < 1 + share && times > 1 - share; };
  std::string interval;
  if (have_intervals)
    interval = fmt::format(" (95 %: {} to {})", ratio(*after.low / *before.high),
                           ratio(*after.high / std::max(1e-300, *before.low)));
  const std::string rates = fmt::format("from {} to {} samples/s", per_second(before.value), per_second(after.value));
  if (overlap || (!have_intervals && is_within(kOneRun))) {
    return fmt::format(
        "No measurable change: {}, {}{}{}.", rates, ratio(times), interval,
        have_intervals ? "" : fmt::format("; two runs may differ by {} without any change", percent(kOneRun)));
  }
  if (is_within(kWorth))
    return fmt::format("A change below {:g} %: {}, {}{}.", 100 * kWorth, rates, ratio(times), interval);
  return fmt::format("{} {}: {}{}.", ratio(times > 1 ? times : 1 / times), times > 1 ? "faster" : "slower", rates,
                     interval);
}

double wait_share(const SplitBar& bar) {
  double wait = 0;
  for (const auto& [stage, ms] : bar.parts) wait += stage == Stage::compute ? 0 : ms;
  return bar.total_ms() > 0 ? wait / bar.total_ms() : 0;
}

}  // namespace

Side side_of(const tune::RecordedRun& run) {
  const RunView view(run);
  if (view.chosen == nullptr) {
    throw Error(ErrorKind::usage, fmt::format("cannot compare with `{}`: {}", run.place, run.choice.reason),
                "compare runs in which something ran");
  }
  const tune::Row& row = run.rows[view.chosen->row];
  Side side{
      .label = run.place, .rate = view.rate(*view.chosen), .verdict = row.verdict.empty() ? row.bound : row.verdict};
  side.settings = tune::text(*view.chosen->point);
  side.host_bytes = view.chosen->host_bytes;
  if (row.compute_ms && row.data_ms) {
    side.bar = SplitBar{
        run.place,
        {{Stage::compute, *row.compute_ms}, {Stage::h2d, row.h2d_ms.value_or(0)}, {Stage::wait, *row.data_ms}}};
    std::erase_if(side.bar->parts, [](const auto& part) { return part.second <= 0; });
  }
  return side;
}

Comparison compare(const std::vector<Side>& sides) {
  Comparison comparison;
  if (sides.size() < 2) return comparison;
  const Side &first = sides.front(), &last = sides.back();
  Table& table = comparison.table;
  table.header = {""};
  for (const Side& side : sides) table.header.push_back(side.label);
  table.header.emplace_back("change");
  const auto add = [&](const std::string& what, auto text_of, const std::string& change) {
    std::vector<std::string> cells = {what};
    bool is_known = false;
    for (const Side& side : sides) {
      cells.push_back(text_of(side));
      is_known = is_known || !cells.back().empty();
      if (cells.back().empty()) cells.back() = "unknown";
    }
    cells.push_back(change);
    if (is_known) table.rows.push_back(std::move(cells));
  };
  add(
      "settings", [](const Side& side) { return side.settings; }, "");
  add(
      "samples/s",
      [](const Side& side) {
        if (!(side.rate.value > 0)) return std::string();
        const std::string interval = interval_text(side.rate);
        return per_second(side.rate.value) + (interval.empty() ? "" : fmt::format(" ({})", interval));
      },
      change_text(first.rate, last.rate));
  const auto step = [](const Side& side) { return side.bar ? side.bar->total_ms() : 0; };
  add(
      "step", [&](const Side& side) { return step(side) > 0 ? milliseconds(step(side)) : ""; },
      step(first) > 0 && step(last) > 0 ? ratio(step(last) / step(first)) : "");
  add(
      "waiting for data", [](const Side& side) { return side.bar ? percent(wait_share(*side.bar)) : ""; }, "");
  add(
      "verdict", [](const Side& side) { return side.verdict; }, "");
  add(
      "host memory, peak", [](const Side& side) { return side.host_bytes ? byte_text(*side.host_bytes) : ""; }, "");
  for (const Side& side : sides) {
    if (!side.bar || side.bar->parts.empty()) continue;
    comparison.bars.push_back(*side.bar);
    if (!side.settings.empty()) comparison.bars.back().label += fmt::format(" ({})", side.settings);
  }
  if (first.rate.value > 0 && last.rate.value > 0) comparison.sentence = gain_text(first.rate, last.rate);
  table.note =
      "The runs were made one after the other: whether the page cache was as warm in both is not recorded. The change "
      "compares the last with the first.";
  return comparison;
}

}  // namespace stoker::report
