#include "stoker/report/findings.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "stoker/report/words.h"

namespace stoker::report {
namespace {

using tune::Measured;
using tune::Row;
using tune::Status;

constexpr double kSame = 0.02;    // the tolerance of tune::choose
constexpr double kSingle = 0.05;  // what two single runs of the same may differ by

bool was_measured_here(const tune::RecordedRun& run) {
  return run.config && !run.config->schema.empty();
}

bool was_tried(Status status) {
  return status != Status::pruned && status != Status::skipped_memory;
}

// "8 workers, batch size 32, pin_memory=True"
std::string settings_text(const RunView& view, const tune::Point& point) {
  std::vector<std::string> knobs = view.run.knobs;
  const auto rank = [](const std::string& knob) {
    return tune::role_of(knob) == "num_workers" ? 0 : tune::role_of(knob) == "batch_size" ? 1 : 2;
  };
  std::stable_sort(knobs.begin(), knobs.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  std::string text;
  for (const std::string& knob : knobs) {
    const auto at = point.find(knob);
    if (at == point.end()) continue;
    text += text.empty() ? "" : ", ";
    text += rank(knob) == 0   ? fmt::format("{} worker{}", at->second, at->second == "1" ? "" : "s")
            : rank(knob) == 1 ? fmt::format("batch size {}", at->second)
                              : fmt::format("{}={}", knob, at->second);
  }
  return text;
}

std::string list_text(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return text;
}

void add_headline(const RunView& view, Report& report) {
  if (view.chosen == nullptr) {
    report.has_result = false;
    report.headline = view.points.empty()
                          ? "Nothing was tried: there are no rows."
                          : fmt::format("None of {} ran, so nothing is chosen.", plural(view.points.size(), "point"));
    return;
  }
  const std::string settings = settings_text(view, *view.chosen->point), rate = rate_text(view.rate(*view.chosen));
  if (view.points.size() == 1) {
    report.headline = fmt::format("One point was measured: {} gives {}.", settings, rate);
  } else if (view.best == view.chosen || view.best == nullptr) {
    report.headline = fmt::format("Use {}: {}, the fastest that ran.", settings, rate);
  } else {
    report.headline = fmt::format("Use {}: {}, within {} of the fastest and cheaper.", settings, rate,
                                  percent(std::max(0.001, 1 - view.chosen->rate / view.best->rate)));
  }
}

void add_tiles(const RunView& view, Report& report) {
  if (view.chosen != nullptr) {
    const Figure rate = view.rate(*view.chosen);
    report.tiles.push_back({"chosen", per_second(rate.value) + "/s",
                            rate.low ? interval_text(rate) : "samples per second; interval not recorded"});
    const Measured* slowest = nullptr;
    for (const Measured& point : view.points) {
      if (!point.ok.empty() && (slowest == nullptr || point.rate < slowest->rate)) slowest = &point;
    }
    if (slowest != nullptr && slowest->rate > 0 && slowest != view.chosen) {
      report.tiles.push_back(
          {"against the slowest", ratio(view.chosen->rate / slowest->rate),
           fmt::format("{}/s with {}", per_second(slowest->rate), settings_text(view, *slowest->point))});
    }
  }
  std::size_t tried = 0;
  for (const Measured& point : view.points) tried += !point.ok.empty() || was_tried(point.last) ? 1 : 0;
  report.tiles.push_back(
      {"points that ran", fmt::format("{} of {}", view.run.choice.ok, view.points.size()),
       tried == view.points.size()
           ? fmt::format("{} failed", tried - view.run.choice.ok)
           : fmt::format("{} failed, {} not tried", tried - view.run.choice.ok, view.points.size() - tried)});
  if (view.run.choice.knee) {
    report.tiles.push_back({"knee", plural(static_cast<std::size_t>(*view.run.choice.knee), "worker"),
                            "each one beyond it brings little"});
  }
}

void add_outcomes(const RunView& view, Report& report) {
  std::map<Status, Failure> failures;
  for (const Measured& point : view.points) {
    if (!point.ok.empty()) continue;
    Failure& failure = failures[point.last];
    if (failure.count++ == 0) {
      failure.status = name(point.last);
      failure.glyph = glyph(point.last);
      failure.meaning = meaning(point.last);
    }
    for (const Row& row : view.run.rows) {
      if (failure.example.empty() && row.knobs == *point.point && row.status == point.last) failure.example = row.error;
    }
  }
  for (auto& [status, failure] : failures) report.failures.push_back(std::move(failure));
  std::stable_sort(report.failures.begin(), report.failures.end(),
                   [](const Failure& a, const Failure& b) { return a.count > b.count; });
  report.outcome = fmt::format("{}, {} ok", plural(view.points.size(), "point"), view.run.choice.ok);
  for (const Failure& failure : report.failures)
    report.outcome += fmt::format(", {} {}", failure.count, failure.status);
  const auto trials = static_cast<std::size_t>(
      std::count_if(view.run.rows.begin(), view.run.rows.end(), [](const Row& row) { return was_tried(row.status); }));
  report.outcome += trials == view.points.size() ? "." : fmt::format("; {} in all.", plural(trials, "trial"));
  if (!view.run.unfinished.empty()) report.outcome += fmt::format(" Not finished: {}.", view.run.unfinished);
}

void find_slow_start(const RunView& view, Report& report) {
  if (view.x_knob.empty()) return;
  std::vector<const Measured*> line = view.along(*view.chosen, view.x_knob);
  std::erase_if(line, [](const Measured* point) { return point->ok.empty(); });
  if (line.size() < 2) return;
  const Measured& first = *line.front();
  if (&first != view.chosen && first.rate > 0 && view.chosen->rate > 1.1 * first.rate) {
    const Row& row = view.run.rows[first.row];
    const std::string bound = row.verdict.empty() ? row.bound : row.verdict;
    report.findings.push_back(fmt::format("{}={} gives {} samples/s{}: the choice is {} as fast.", view.x_knob,
                                          first.point->find(view.x_knob)->second, per_second(first.rate),
                                          bound.empty() ? "" : fmt::format(" ({})", bound),
                                          ratio(view.chosen->rate / first.rate)));
  }
  std::vector<std::string> beyond;
  double low = 0, high = 0;
  for (const Measured* point : line) {
    const auto x = tune::number_of(*point->point, view.x_knob),
               chosen = tune::number_of(*view.chosen->point, view.x_knob);
    if (!x || !chosen || *x <= *chosen) continue;
    low = beyond.empty() ? point->rate : std::min(low, point->rate);
    high = std::max(high, point->rate);
    beyond.push_back(point->point->find(view.x_knob)->second);
  }
  if (beyond.empty()) return;
  report.findings.push_back(fmt::format("Beyond {}={} the curve is {}: {} {} {}{} samples/s.", view.x_knob,
                                        view.chosen->point->find(view.x_knob)->second,
                                        low < (1 - 5 * kSame) * view.chosen->rate    ? "falling"
                                        : high < (1 + 2 * kSame) * view.chosen->rate ? "flat"
                                                                                     : "no cheaper way up",
                                        list_text(beyond), beyond.size() == 1 ? "gives" : "give",
                                        beyond.size() == 1 ? "" : per_second(low) + " to ", per_second(high)));
}

// Every other knob, one change away from the choice.
void find_single_changes(const RunView& view, Report& report) {
  for (const std::string& knob : view.run.knobs) {
    if (knob == view.x_knob) continue;
    std::vector<std::string> parts;
    for (const Measured* point : view.along(*view.chosen, knob)) {
      if (point == view.chosen || parts.size() == 6) continue;
      const std::string value = point->point->find(knob)->second;
      if (point->ok.empty()) {
        if (was_tried(point->last)) parts.push_back(fmt::format("{} fails ({})", value, name(point->last)));
        continue;
      }
      const double change = point->rate / view.chosen->rate - 1;
      const bool are_single = !point->has_interval || !view.chosen->has_interval;
      parts.push_back(std::abs(change) < kSame ? fmt::format("{} is the same within 2 %", value)
                      : are_single && std::abs(change) < kSingle
                          ? fmt::format("{} gives {} samples/s, no difference that single runs could show", value,
                                        per_second(point->rate))
                          : fmt::format("{} is {} {} ({} samples/s)", value, percent(std::abs(change)),
                                        change < 0 ? "slower" : "faster", per_second(point->rate)));
    }
    if (parts.empty()) continue;
    report.findings.push_back(
        fmt::format("{}: {} is chosen; {}.", knob, view.chosen->point->find(knob)->second, list_text(parts)));
  }
}

// Values of a knob with which nothing ran, and how far up the others went.
void find_failing_regions(const RunView& view, Report& report) {
  std::size_t failed = 0;
  for (const Measured& point : view.points) failed += point.ok.empty() && was_tried(point.last) ? 1 : 0;
  if (failed == 0) return;
  std::vector<std::string> regions;
  for (const std::string& knob : view.run.knobs) {
    const std::vector<std::string> values = view.values(knob);
    if (values.size() < 2) continue;
    for (const std::string& value : values) {
      std::size_t all = 0, bad = 0;
      for (const Measured& point : view.points) {
        const auto at = point.point->find(knob);
        if (at == point.point->end() || at->second != value) continue;
        ++all;
        bad += point.ok.empty() && was_tried(point.last) ? 1 : 0;
      }
      if (bad == 0 || (bad < all && 2 * bad < all)) continue;
      regions.push_back(bad == all ? fmt::format("all {} with {}={}", all, knob, value)
                                   : fmt::format("{} of {} with {}={}", bad, all, knob, value));
    }
  }
  std::string text = fmt::format("{} failed", plural(failed, "point"));
  if (regions.empty() && failed <= 3) {
    for (const Measured& point : view.points) {
      if (point.ok.empty() && was_tried(point.last))
        regions.push_back(fmt::format("{} ({})", tune::text(*point.point), name(point.last)));
    }
  }
  if (!regions.empty() && regions.size() <= 6) text += fmt::format(": {}", list_text(regions));
  const bool all_faults = std::all_of(view.points.begin(), view.points.end(), [](const Measured& point) {
    return !point.ok.empty() || !was_tried(point.last) || point.last == Status::runtime_fault;
  });
  text += all_faults ? ". They are faults of the device or its software, not a lack of memory: no limit on the batch "
                       "size follows from them."
                     : ".";
  report.findings.push_back(std::move(text));
}

void find_uncertainty(const RunView& view, Report& report) {
  std::size_t without = 0, ok = 0, burst = 0;
  double from_workers = 0;
  for (const Measured& point : view.points) {
    if (point.ok.empty()) continue;
    ++ok;
    without += point.has_interval ? 0 : 1;
    if (was_measured_here(view.run)) continue;  // those rates are corrected for the queue
    const auto workers = tune::number_of(*point.point, "num_workers");
    const double prefetch = tune::number_of(*point.point, "prefetch_factor").value_or(2);
    const Row& row = view.run.rows[point.row];
    if (!workers || !row.steps || *workers * prefetch <= static_cast<double>(*row.steps)) continue;
    from_workers = burst == 0 ? *workers : std::min(from_workers, *workers);
    ++burst;
  }
  if (without > 0) {
    report.findings.push_back(
        fmt::format("{}: single runs, and differences of a few per cent between them mean nothing.",
                    without == ok ? fmt::format("None of the {} rates has an interval", ok)
                                  : fmt::format("{} of {} rates have no interval", without, ok)));
  }
  if (const double noise = tune::noise_of(view.points); noise > 0) {
    report.findings.push_back(fmt::format(
        "Runs of one and the same point differ by up to {}: smaller differences between points mean little.",
        percent(noise)));
  }
  if (burst > 0) {
    report.findings.push_back(fmt::format(
        "With {:g} workers and more, the batches that wait ready before the clock starts (workers times prefetch) "
        "outnumber the steps measured: those rates may be a burst, not what a long run sees.",
        from_workers));
  }
}

void add_reasons(const RunView& view, Report& report) {
  if (view.chosen == nullptr) return;
  if (!view.run.choice.reason.empty()) report.reasons.push_back(sentence(view.run.choice.reason));
  if (view.chosen->has_failed) {
    report.reasons.emplace_back("It also failed once: nothing that never failed ran.");
  }
  if (view.points.size() < 2) {
    report.reasons.emplace_back("What would change it: any second point. One alone cannot be compared.");
  } else if (!view.chosen->has_interval) {
    report.reasons.emplace_back(
        "What would change it: repeating the chosen and the best point a few times, in turn, so that both have an "
        "interval.");
  } else if (view.best != view.chosen && view.best != nullptr) {
    report.reasons.emplace_back("What would change it: more steps, if 2 % matter more than what the faster one costs.");
  } else {
    report.reasons.emplace_back(
        "What would change it: another step time, other data, or a colder page cache than in these trials.");
  }
}

}  // namespace

void add_findings(const RunView& view, Report& report) {
  add_headline(view, report);
  add_tiles(view, report);
  add_outcomes(view, report);
  if (view.chosen != nullptr) {
    find_slow_start(view, report);
    find_single_changes(view, report);
  } else if (!view.points.empty()) {
    for (const Failure& failure : report.failures) {
      report.findings.push_back(
          fmt::format("{} ended as {}: {}{}", plural(failure.count, "point"), failure.status, failure.meaning,
                      failure.example.empty() ? "." : fmt::format(" (\"{}\").", failure.example.substr(0, 200))));
    }
    report.findings.emplace_back(
        "Nothing can be planned from a run in which nothing ran: start with the smallest batch and no workers.");
  }
  find_failing_regions(view, report);
  find_uncertainty(view, report);
  for (const Text& note : view.run.notes) report.findings.push_back(sentence(in_flags(note)));
  add_reasons(view, report);
}

}  // namespace stoker::report
