#include "stoker/report/from_plan.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/report/settings.h"
#include "stoker/report/words.h"

namespace stoker::report {
namespace {

constexpr std::size_t kMostConfigurations = 8, kMostOptions = 12;

std::string text_of(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) && object.at(key).is_string() ? object.at(key).get<std::string>()
                                                                                  : "";
}

bool is_true(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) && object.at(key).is_boolean() && object.at(key).get<bool>();
}

const Json& list_of(const Json& object, const char* key) {
  static const Json kNone = Json::array();
  return object.is_object() && object.contains(key) && object.at(key).is_array() ? object.at(key) : kNone;
}

std::string sentence(std::string text) {
  if (text.empty()) return text;
  if (text[0] >= 'a' && text[0] <= 'z' && text.substr(0, text.find(' ')).find_first_of("_=`") == std::string::npos)
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  if (!text.ends_with('.')) text += '.';
  return text;
}

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
std::string range_text(const Json& object, const char* key, Text text) {
  const auto p10 = number_at(object, {key, "p10"}), p50 = number_at(object, {key, "p50"}),
             p90 = number_at(object, {key, "p90"});
  if (!p50) return "";
  if (!p10 || !p90) return text(*p50);
  return fmt::format("{} ({} to {})", text(*p50), text(std::min(*p10, *p90)), text(std::max(*p10, *p90)));
}

// "14.0 days (13.5 to 14.6)", "31 s (30 to 33)": the unit of the middle.
std::string time_range(const Json& object) {
  const double p50 = number_at(object, {"days", "p50"}).value_or(0);
  const std::string middle = time_text(p50);
  const std::string unit = middle.substr(middle.rfind(' '));
  const double per_day = unit == " days" ? 1 : unit == " hours" ? 24 : unit == " min" ? 1440 : 86400;
  const auto p10 = number_at(object, {"days", "p10"}), p90 = number_at(object, {"days", "p90"});
  if (!p10 || !p90) return middle;
  const auto text = [&](double days) { return per_day == 1 ? days_text(days) : fmt::format("{:.3g}", days * per_day); };
  return fmt::format("{} ({} to {})", middle, text(std::min(*p10, *p90)), text(std::max(*p10, *p90)));
}

std::string of_limit(std::optional<double> bytes, std::optional<double> limit) {
  if (!bytes || !(*bytes > 0)) return "";
  return limit && *limit > 0 ? fmt::format("{} of {}", byte_text(*bytes), byte_text(*limit)) : byte_text(*bytes);
}

void add_job(const Json& plan, Report& report) {
  const auto images = number_at(plan, {"job", "images"});
  if (!images) return;
  std::string text = fmt::format("The job: {} images", count_text(*images));
  if (const auto epochs = number_at(plan, {"job", "epochs"})) text += fmt::format(" in {:.3g} epochs", *epochs);
  if (const auto budget = number_at(plan, {"job", "budget_days"}))
    text += fmt::format(", within {}", time_text(*budget));
  if (const auto needed = number_at(plan, {"job", "needed_images_per_s"}))
    text += fmt::format("; that takes {} images/s", per_second(*needed));
  report.plan_sentences.push_back(text + ".");
}

void add_durations(const Json& run, const std::string& title, Report& report) {
  Table table{.title = title,
              .header = {"configuration", "time, P50 (P10 to P90)", "images/day", "images/s", "verdict"}};
  std::vector<const Json*> all;
  for (const Json& one : list_of(run, "configurations")) {
    if (number_at(one, {"days", "p50"})) all.push_back(&one);
  }
  // What is chosen comes first, then the fastest.
  std::stable_sort(all.begin(), all.end(), [](const Json* a, const Json* b) {
    const auto rank = [](const Json* one) { return is_true(*one, "chosen") ? 0 : 1; };
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    return *number_at(*a, {"days", "p50"}) < *number_at(*b, {"days", "p50"});
  });
  bool is_assumed = false;
  for (std::size_t i = 0; i < std::min(all.size(), kMostConfigurations); ++i) {
    const Json& one = *all[i];
    is_assumed = is_assumed || text_of(one, "interval") == "assumed";
    table.rows.push_back({text_of(one, "label") + (is_true(one, "chosen") ? " (chosen)" : ""), time_range(one),
                          range_text(one, "images_per_day", count_text), range_text(one, "images_per_s", per_second),
                          text_of(one, "verdict")});
  }
  if (table.rows.empty()) return;
  table.note = "One run in ten is shorter than P10, one in ten longer than P90.";
  if (is_assumed) table.note += " Where no interval was recorded, the range is an assumed one.";
  if (all.size() > kMostConfigurations)
    table.note += fmt::format(" {} more are in plan.json.", all.size() - kMostConfigurations);
  report.plan.push_back(std::move(table));
}

void add_host_memory(const Json& run, Report& report) {
  if (!run.contains("host_memory") || !run.at("host_memory").is_object()) return;
  const Json& host = run.at("host_memory");
  Table table{.title = is_true(host, "unified") ? "Memory, shared by host and device" : "Host memory",
              .header = {"what", "how", "bytes"},
              .text_columns = 2};
  for (const Json& line : list_of(host, "lines")) {
    table.rows.push_back(
        {text_of(line, "what"), text_of(line, "how"), byte_text(number_at(line, {"bytes"}).value_or(0))});
  }
  if (table.rows.empty()) return;
  const auto limit = number_at(host, {"limit_bytes"});
  table.rows.push_back({"together", limit ? fmt::format("of {}", byte_text(*limit)) : "the limit is not known",
                        byte_text(number_at(host, {"total_bytes"}).value_or(0))});
  if (const auto cache = number_at(host, {"page_cache_bytes"}))
    table.note = fmt::format("{} remain for the page cache.", byte_text(*cache));
  report.plan.push_back(std::move(table));
}

void add_what_ifs(const Json& run, Report& report) {
  Table table{.title = "What if",
              .header = {"change", "what limits it then", "predicted, images/s", "gain", "measured, images/s",
                         "error beyond its interval"},
              .text_columns = 2};
  for (const Json& one : list_of(run, "what_ifs")) {
    const auto predicted = number_at(one, {"predicted_images_per_s"}), gain = number_at(one, {"gain"}),
               measured = number_at(one, {"measured_images_per_s"}), low = number_at(one, {"measured_low"}),
               high = number_at(one, {"measured_high"}), error = number_at(one, {"error"});
    std::string seen = measured ? per_second(*measured) : "";
    if (measured && low && high) seen += fmt::format(" ({} to {})", per_second(*low), per_second(*high));
    table.rows.push_back({text_of(one, "name"), text_of(one, "limit"), predicted ? per_second(*predicted) : "",
                          gain ? ratio(*gain) : "", seen.empty() ? "not run" : seen, error ? percent(*error) : ""});
  }
  if (table.rows.empty()) return;
  table.note =
      "Predicted from the rates of the stages: the slowest one is the rate of the whole. The error counts beyond the "
      "measured interval.";
  report.plan.push_back(std::move(table));
}

void add_nodes(const Json& run, Report& report) {
  Table table{.title = "Nodes that share one storage", .header = {"nodes", "images/s", "of what each could take"}};
  for (const Json& one : list_of(run, "nodes")) {
    table.rows.push_back({short_number(number_at(one, {"nodes"}).value_or(0)),
                          per_second(number_at(one, {"images_per_s"}).value_or(0)),
                          percent(number_at(one, {"share"}).value_or(0))});
  }
  if (table.rows.empty()) return;
  if (const auto full = number_at(run, {"saturating_nodes"}))
    table.note = fmt::format("The storage is full at {:.3g} nodes.", *full);
  report.plan.push_back(std::move(table));
}

void add_device_memory(const Json& run, Report& report) {
  if (!run.contains("device_memory") || !run.at("device_memory").is_object()) return;
  const Json& device = run.at("device_memory");
  LineChart chart{.x_label = "batch_size", .y_label = "device memory", .unit = Unit::bytes};
  Curve predicted{fmt::format("predicted ({})", text_of(device, "basis")), {}}, observed{"observed", {}};
  std::string unexplained;
  for (const Json& point : list_of(device, "points")) {
    const auto batch = number_at(point, {"batch_size"}), bytes = number_at(point, {"predicted_bytes"}),
               seen = number_at(point, {"observed_bytes"});
    if (!batch || !bytes || !std::isfinite(*bytes) || *bytes < 0) continue;
    const std::string tip =
        fmt::format("batch size {}\npredicted {}\nobserved {}", short_number(*batch), byte_text(*bytes),
                    is_true(point, "out_of_memory") ? "out of memory"
                    : seen                          ? byte_text(*seen)
                                                    : "unknown");
    predicted.marks.push_back({.x = *batch, .y = {.value = *bytes}, .tip = tip});
    if (seen && *seen > 0) observed.marks.push_back({.x = *batch, .y = {.value = *seen}, .tip = tip});
    if (is_true(point, "out_of_memory")) chart.failed.emplace_back(*batch, glyph(tune::Status::oom_device));
    if (is_true(point, "unexplained")) {
      unexplained += fmt::format("{}{} ({} predicted, {})", unexplained.empty() ? "" : ", ", short_number(*batch),
                                 byte_text(*bytes),
                                 is_true(point, "out_of_memory") ? "out of memory"
                                 : seen                          ? byte_text(*seen) + " observed"
                                                                 : "unknown");
    }
  }
  const auto by_x = [](const Mark& a, const Mark& b) { return a.x < b.x; };
  std::stable_sort(predicted.marks.begin(), predicted.marks.end(), by_x);
  std::stable_sort(observed.marks.begin(), observed.marks.end(), by_x);
  if (predicted.marks.size() < 2) return;
  chart.curves.push_back(std::move(predicted));
  if (!observed.marks.empty()) chart.curves.push_back(std::move(observed));
  if (const auto limit = number_at(device, {"limit_bytes"}); limit && *limit > 0) {
    chart.limit = *limit;
    chart.limit_label = fmt::format("limit {}", byte_text(*limit));
    chart.note = fmt::format("The limit is {}.", byte_text(*limit));
  } else {
    chart.note = "The device's limit is not known.";
  }
  if (const auto largest = number_at(device, {"largest_batch"}))
    chart.note += fmt::format(" Largest safe batch: {}.", short_number(*largest));
  if (!unexplained.empty()) chart.note += fmt::format(" Unexplained by any formula: batch {}.", unexplained);
  report.memory.push_back(std::move(chart));
}

void add_options(const Json& run, Report& report) {
  std::vector<Option> worth, others;
  for (const Json& one : list_of(run, "options")) {
    const bool is_worth = is_true(one, "worth");
    Option option;
    option.title = text_of(one, "name");
    if (is_worth) option.gain = range_text(one, "gain", ratio);
    option.text = sentence(text_of(one, "change"));
    const auto add = [&](const char* name, std::string text) {
      if (!text.empty()) option.facts.push_back({name, std::move(text)});
    };
    if (const auto days = number_at(one, {"days"}); days && is_worth) add("time", time_text(*days));
    add("host memory", of_limit(number_at(one, {"host_peak_bytes"}), number_at(one, {"host_limit_bytes"})));
    add("device memory", of_limit(number_at(one, {"device_peak_bytes"}), number_at(one, {"device_limit_bytes"})));
    if (is_worth) add("evidence", text_of(one, "evidence"));
    const std::string risk = text_of(one, "risk"), reason = text_of(one, "reason");
    add(is_worth ? "risk" : "not worth testing",
        is_worth && !risk.empty() ? fmt::format("{}{}{}", risk, reason.empty() ? "" : ": ", reason) : reason);
    if (is_true(one, "changes_training")) add("changes the training", text_of(one, "training"));
    if (is_worth) option.command = text_of(one, "command");
    (is_worth ? worth : others).push_back(std::move(option));
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

// The run whose folder the plan lies in; of a plan elsewhere, the one that it would take.
std::size_t run_of(const Json& plan, const Json& runs, const std::string& file) {
  const std::string folder = file.substr(0, std::max<std::size_t>(1, file.rfind('/') + 1) - 1);
  const auto last = [](std::string path) {
    while (path.ends_with('/')) path.pop_back();
    return path.substr(path.rfind('/') + 1);
  };
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!folder.empty() && last(text_of(runs.at(i), "source")) == last(folder)) return i;
  }
  const auto picked = number_at(plan, {"chosen_run"});
  return picked && *picked >= 0 && *picked < static_cast<double>(runs.size()) ? static_cast<std::size_t>(*picked) : 0;
}

}  // namespace

void add_plan(const Json& plan, const std::string& file, Report& report) {
  if (!plan.is_object() || !text_of(plan, "schema").starts_with("stoker.plan/")) {
    throw Error(ErrorKind::corrupt, fmt::format("cannot read `{}`: it is not what `stoker plan` writes", file),
                "write it again with `stoker plan --run DIR`, or take it out of the folder");
  }
  report.plan_sentences.push_back(sentence(text_of(plan, "headline")));
  if (const std::string pivot = text_of(plan, "pivot"); !pivot.empty())
    report.plan_sentences.push_back(sentence(pivot));
  add_job(plan, report);
  const Json& runs = list_of(plan, "runs");
  const bool is_one = runs.size() == 1;
  for (const Json& run : runs) {
    add_durations(run, is_one ? "" : text_of(run, "name"), report);
  }
  const std::size_t main = run_of(plan, runs, file);
  if (main < runs.size()) {
    const Json& run = runs.at(main);
    add_host_memory(run, report);
    add_what_ifs(run, report);
    add_nodes(run, report);
    add_device_memory(run, report);
    add_options(run, report);
    for (const Json& note : list_of(run, "notes")) {
      if (note.is_string()) report.plan_sentences.push_back(sentence(note.get<std::string>()));
    }
  }
  for (const Json& note : list_of(plan, "notes")) {
    if (note.is_string()) report.plan_sentences.push_back(sentence(note.get<std::string>()));
  }
}

Report from_plan(const Json& plan, const std::string& file) {
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
