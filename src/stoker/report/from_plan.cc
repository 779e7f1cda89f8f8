#include "stoker/report/from_plan.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stoker/base/shell.h"
#include "stoker/base/units.h"
#include "stoker/report/words.h"

namespace stoker::report {
namespace {

constexpr std::size_t kMostConfigurations = 8, kMostOptions = 12;

std::string days_text(double days) {
  if (days >= 99.5) return format_count(static_cast<std::uint64_t>(std::llround(std::min(days, 1e15))));
  return days >= 0.095 ? fmt::format("{:.1f}", days) : fmt::format("{:.2g}", days);
}

std::string time_text(double days) {
  if (days >= 3) return days_text(days) + " days";
  if (days * 24 >= 2) return fmt::format("{:.3g} hours", days * 24);
  return days * 1440 >= 2 ? fmt::format("{:.3g} min", days * 1440) : fmt::format("{:.3g} s", days * 86400);
}

std::string count_text(double count) {
  if (count >= 9.95e8) return fmt::format("{:.3g} G", count / 1e9);
  if (count >= 9.95e5) return fmt::format("{:.3g} M", count / 1e6);
  return format_count(static_cast<std::uint64_t>(std::llround(std::max(0.0, count))));
}

// "14.0 (13.5 to 14.6)": P50, and P10 to P90.
template <typename Text>
std::string range_text(const plan::RateSpread& range, Text text) {
  return fmt::format("{} ({} to {})", text(range.p50), text(std::min(range.p10, range.p90)),
                     text(std::max(range.p10, range.p90)));
}

// "14.0 days (13.5 to 14.6)", "31 s (30 to 33)": the unit of the middle.
std::string time_range(const plan::Duration& time) {
  const double per_day = time.p50 >= 3 ? 1 : time.p50 * 24 >= 2 ? 24 : time.p50 * 1440 >= 2 ? 1440 : 86400;
  const auto text = [&](double days) { return per_day == 1 ? days_text(days) : fmt::format("{:.3g}", days * per_day); };
  return fmt::format("{} ({} to {})", time_text(time.p50), text(std::min(time.p10, time.p90)),
                     text(std::max(time.p10, time.p90)));
}

// A limit of 0 is not known.
std::string of_limit(std::optional<double> bytes, double limit) {
  if (!bytes || !(*bytes > 0)) return "";
  return limit > 0 ? fmt::format("{} of {}", byte_text(*bytes), byte_text(limit)) : byte_text(*bytes);
}

void add_job(const plan::PlanAnswer& plan, Report& report) {
  if (!plan.has_job) return;
  std::string text = fmt::format("The job: {} images", count_text(plan.job.images));
  if (plan.job.epoch_images) text += fmt::format(" in {:.3g} epochs", plan.job.epochs());
  if (plan.job.budget_days) text += fmt::format(", within {}", time_text(*plan.job.budget_days));
  if (plan.needed_per_s) text += fmt::format("; that takes {} images/s", per_second(*plan.needed_per_s));
  report.plan_sentences.push_back(text + ".");
}

void add_durations(const plan::PlannedRun& run, const std::string& title, Report& report) {
  Table table{.title = title,
              .header = {"configuration", "time, P50 (P10 to P90)", "images/day", "images/s", "verdict"}};
  std::vector<const plan::PlannedConfiguration*> all;
  for (const plan::PlannedConfiguration& one : run.configurations) {
    if (one.duration) all.push_back(&one);
  }
  // What is chosen comes first, then the fastest.
  std::stable_sort(all.begin(), all.end(), [](const auto* a, const auto* b) {
    return std::pair(!a->is_chosen, a->duration->p50) < std::pair(!b->is_chosen, b->duration->p50);
  });
  bool is_assumed = false;
  for (std::size_t i = 0; i < std::min(all.size(), kMostConfigurations); ++i) {
    const plan::PlannedConfiguration& one = *all[i];
    is_assumed = is_assumed || (one.rate && one.rate->assumed);
    table.rows.push_back({plan::text(one.measured.knobs) + (one.is_chosen ? " (chosen)" : ""),
                          time_range(*one.duration), range_text(one.duration->images_per_day, count_text),
                          one.rate ? range_text(*one.rate, per_second) : "",
                          std::string(one.duration->verdict ? name(*one.duration->verdict) : "")});
  }
  if (table.rows.empty()) return;
  table.note = "One run in ten is shorter than P10, one in ten longer than P90.";
  if (is_assumed) table.note += " Where no interval was recorded, the range is an assumed one.";
  if (all.size() > kMostConfigurations)
    table.note += fmt::format(" {} more are in plan.json.", all.size() - kMostConfigurations);
  report.plan.push_back(std::move(table));
}

void add_host_memory(const plan::PlannedRun& run, Report& report) {
  if (!run.host || run.host->lines.empty()) return;
  const plan::HostBudget& host = *run.host;
  Table table{.title = host.unified ? "Memory, shared by host and device" : "Host memory",
              .header = {"what", "how", "bytes"},
              .text_columns = 2};
  for (const plan::HostLine& line : host.lines) table.rows.push_back({line.what, line.how, byte_text(line.bytes)});
  table.rows.push_back(
      {"together", host.limit_bytes > 0 ? fmt::format("of {}", byte_text(host.limit_bytes)) : "the limit is not known",
       byte_text(host.total_bytes)});
  if (host.page_cache_bytes)
    table.note = fmt::format("{} remain for the page cache.", byte_text(*host.page_cache_bytes));
  report.plan.push_back(std::move(table));
}

void add_what_ifs(const plan::PlannedRun& run, Report& report) {
  Table table{.title = "What if",
              .header = {"change", "what limits it then", "predicted, images/s", "gain", "measured, images/s",
                         "error beyond its interval"},
              .text_columns = 2};
  for (const plan::VerifiedWhatIf& one : run.what_ifs) {
    std::string seen = one.measured_per_s ? per_second(*one.measured_per_s) : "";
    if (one.measured_per_s && one.low && one.high)
      seen += fmt::format(" ({} to {})", per_second(*one.low), per_second(*one.high));
    table.rows.push_back({one.what.name, std::string(name(one.what.predicted.limit)),
                          per_second(one.what.predicted.per_s), ratio(one.what.gain), seen.empty() ? "not run" : seen,
                          one.error ? percent(*one.error) : ""});
  }
  if (table.rows.empty()) return;
  table.note =
      "Predicted from the rates of the stages: the slowest one is the rate of the whole. The error counts beyond the "
      "measured interval.";
  report.plan.push_back(std::move(table));
}

void add_bundles(const plan::PlannedRun& run, Report& report) {
  Table table{
      .title = "Combinations of changes that act on different limits",
      .header = {"combination", "changes", "risk", "gain", "an epoch", "in all", "host memory", "device memory"},
      .text_columns = 3};
  for (const plan::Bundle& one : run.bundles) {
    const auto bytes = [](const std::optional<double>& size) { return size ? byte_text(*size) : ""; };
    table.rows.push_back({fmt::format("{}, {}", one.label, one.title), fmt::format("{}", fmt::join(one.names, " + ")),
                          fmt::format("{}{}{}", name(one.risk), one.reason.empty() ? "" : ": ", one.reason),
                          range_text(one.gain, ratio), one.epoch_hours ? time_text(*one.epoch_hours / 24) : "",
                          one.days ? time_text(*one.days) : "", bytes(one.host_bytes), bytes(one.device_bytes)});
  }
  if (table.rows.empty()) return;
  table.note =
      "The gain is what the stages give with every change in place: gains that share a limit are not multiplied. Make "
      "the "
      "changes one at a time.";
  report.plan.push_back(std::move(table));
}

void add_memory_parts(const plan::PlannedRun& run, Report& report) {
  if (!run.device || run.device->parts.empty()) return;
  const double batch = run.device->parts_batch;
  Table table{.title = "Device memory by parts", .header = {"part", "fixed", "per image"}};
  if (batch > 0) table.header.push_back(fmt::format("batch {:g}", batch));
  for (const plan::MemoryPart& part : run.device->parts) {
    table.rows.push_back({part.name, byte_text(part.fixed_bytes), byte_text(part.bytes_per_image)});
    if (batch > 0) table.rows.back().push_back(byte_text(part.at(batch)));
  }
  table.note = "Gradients come while activations go: the peak is less than the sum.";
  report.plan.push_back(std::move(table));
}

void add_nodes(const plan::PlannedRun& run, Report& report) {
  Table table{.title = "Nodes that share one storage", .header = {"nodes", "images/s", "of what each could take"}};
  for (const plan::ScaleOut& one : run.nodes)
    table.rows.push_back({short_number(one.nodes), per_second(one.per_s), percent(one.share)});
  if (table.rows.empty()) return;
  if (run.saturating_nodes) table.note = fmt::format("The storage is full at {:.3g} nodes.", *run.saturating_nodes);
  report.plan.push_back(std::move(table));
}

void add_device_memory(const plan::PlannedRun& run, Report& report) {
  if (!run.device) return;
  const plan::DevicePlan& device = *run.device;
  LineChart chart{.x_label = "batch_size", .y_label = "device memory", .unit = Unit::bytes};
  Curve predicted{fmt::format("predicted ({})", device.line.basis), {}}, observed{"observed", {}};
  std::string unexplained;
  for (const plan::Compared& one : device.points) {
    const double batch = one.point.batch, bytes = one.predicted_bytes;
    const std::optional<double>& seen = one.point.observed_bytes;
    const std::string tip =
        fmt::format("batch size {}\npredicted {}\nobserved {}", short_number(batch), byte_text(bytes),
                    one.point.out_of_memory ? "out of memory"
                    : seen                  ? byte_text(*seen)
                                            : "unknown");
    predicted.marks.push_back({.x = batch, .y = {.value = bytes}, .tip = tip});
    if (seen && *seen > 0) observed.marks.push_back({.x = batch, .y = {.value = *seen}, .tip = tip});
    if (one.point.out_of_memory) chart.failed.emplace_back(batch, glyph(tune::Status::oom_device));
    if (one.unexplained) {
      unexplained +=
          fmt::format("{}{} ({} predicted, {})", unexplained.empty() ? "" : ", ", short_number(batch), byte_text(bytes),
                      one.point.out_of_memory ? "out of memory"
                      : seen                  ? byte_text(*seen) + " observed"
                                              : "unknown");
    }
  }
  const auto by_x = [](const Mark& a, const Mark& b) { return a.x < b.x; };
  std::stable_sort(predicted.marks.begin(), predicted.marks.end(), by_x);
  std::stable_sort(observed.marks.begin(), observed.marks.end(), by_x);
  if (predicted.marks.size() < 2) return;
  chart.curves.push_back(std::move(predicted));
  if (!observed.marks.empty()) chart.curves.push_back(std::move(observed));
  if (device.limit_bytes > 0) {
    chart.limit = device.limit_bytes;
    chart.limit_label = fmt::format("limit {}", byte_text(device.limit_bytes));
    chart.note = fmt::format("The limit is {}.", byte_text(device.limit_bytes));
  } else {
    chart.note = "The device's limit is not known.";
  }
  if (device.largest_batch)
    chart.note += fmt::format(" Largest safe batch: {}.", short_number(static_cast<double>(*device.largest_batch)));
  if (!unexplained.empty()) chart.note += fmt::format(" Unexplained by any formula: batch {}.", unexplained);
  report.memory.push_back(std::move(chart));
}

void add_options(const plan::PlannedRun& run, Report& report) {
  std::vector<Option> worth, others;
  for (const plan::Option& one : run.options) {
    Option option;
    option.title = one.name;
    if (one.worth) option.gain = range_text(one.gain, ratio);
    option.text = sentence(one.change);
    const auto add = [&](const char* name, std::string text) {
      if (!text.empty()) option.facts.push_back({name, std::move(text)});
    };
    if (one.days && one.worth) add("time", time_text(*one.days));
    add("host memory", of_limit(one.host_bytes, run.input.limits.memory_bytes));
    add("device memory", of_limit(one.device_bytes, run.input.device_limit_bytes));
    if (one.worth) add("evidence", std::string(name(one.evidence)));
    const std::string_view risk = name(one.risk);
    add(one.worth ? "risk" : "not worth testing",
        one.worth && !risk.empty() ? fmt::format("{}{}{}", risk, one.reason.empty() ? "" : ": ", one.reason)
                                   : one.reason);
    if (one.changes_training) add("changes the training", one.training);
    if (one.worth) option.command = one.command;
    (one.worth ? worth : others).push_back(std::move(option));
  }
  char letter = 'A';
  for (Option& option : worth) {
    if (report.options.size() == kMostOptions) break;
    option.title = fmt::format("{}. {}", letter == 'Z' + 1 ? '*' : letter++, option.title);
    report.options.push_back(std::move(option));
  }
  for (Option& option : others) {
    if (report.options.size() < kMostOptions) report.options.push_back(std::move(option));
  }
}

// A sentence that begins with the name of a run keeps its spelling: people search for it, and it is a folder.
std::string of_runs(const plan::PlanAnswer& plan, const std::string& text) {
  std::string made = sentence(text);
  for (const plan::PlannedRun& run : plan.runs) {
    if (!run.input.name.empty() && text.starts_with(run.input.name + " ")) made[0] = text[0];
  }
  return made;
}

// The run whose folder the plan lies in; of a plan elsewhere, the one that it would take.
std::size_t run_of(const plan::PlanAnswer& plan, const std::string& file) {
  const std::string folder = file.substr(0, std::max<std::size_t>(1, file.rfind('/') + 1) - 1);
  const auto last = [](std::string path) {
    while (path.ends_with('/')) path.pop_back();
    return path.substr(path.rfind('/') + 1);
  };
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    if (!folder.empty() && last(plan.runs[i].input.source) == last(folder)) return i;
  }
  return plan.chosen_run.value_or(0);
}

}  // namespace

void add_plan(const plan::PlanAnswer& plan, const std::string& file, Report& report) {
  report.plan_sentences.push_back(of_runs(plan, plan.headline));
  if (!plan.pivot.empty()) report.plan_sentences.push_back(of_runs(plan, plan.pivot));
  add_job(plan, report);
  for (const plan::PlannedRun& run : plan.runs) add_durations(run, plan.runs.size() == 1 ? "" : run.input.name, report);
  if (const std::size_t main = run_of(plan, file); main < plan.runs.size()) {
    const plan::PlannedRun& run = plan.runs[main];
    add_host_memory(run, report);
    add_memory_parts(run, report);
    add_what_ifs(run, report);
    add_bundles(run, report);
    add_nodes(run, report);
    add_device_memory(run, report);
    add_options(run, report);
    for (const Text& note : run.notes) report.plan_sentences.push_back(sentence(in_flags(note)));
  }
  for (const Text& note : plan.notes) report.plan_sentences.push_back(sentence(in_flags(note)));
}

Report from_plan(const plan::PlanAnswer& plan, const std::string& file) {
  Report report;
  add_plan(plan, file, report);
  report.headline = report.plan_sentences.empty() ? "" : report.plan_sentences.front();
  if (!report.plan_sentences.empty()) report.plan_sentences.erase(report.plan_sentences.begin());
  report.title = "Planning the run";
  report.context.emplace_back(
      "Days, memory and options follow from what was measured before; nothing was run for this page.");
  report.commands.push_back({"Write this report again", fmt::format("stoker report {}", shell_word(file))});
  return report;
}

}  // namespace stoker::report
