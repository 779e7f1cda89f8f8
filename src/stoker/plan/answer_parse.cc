#include <array>
#include <cmath>
#include <initializer_list>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/plan/answer_json.h"

namespace stoker::plan {
namespace {

std::optional<double> number_in(const Json& object, const char* key) {
  const Json* const found = object.find(key);
  return found != object.end() ? found->as<double>() : std::nullopt;
}

std::string text_in(const Json& object, const char* key) {
  const Json* const found = object.find(key);
  return found != object.end() && found->is_string() ? found->text() : "";
}

bool is_true(const Json& object, const char* key) {
  const Json* const found = object.find(key);
  return found != object.end() && found->as<bool>().value_or(false);
}

const Json& inner(const Json& object, const char* key) {
  static const Json kNone;
  const Json* const found = object.find(key);
  return found != object.end() ? *found : kNone;
}

std::vector<Text> texts_in(const Json& object, const char* key) {
  std::vector<Text> all;
  for (const Json& one : inner(object, key)) {
    if (one.is_string()) all.push_back(one.text());
  }
  return all;
}

// The enumerator of that name.
template <typename T>
std::optional<T> named(const std::string& word, std::initializer_list<T> all) {
  for (const T one : all) {
    if (name(one) == word) return one;
  }
  return std::nullopt;
}

std::optional<RateSpread> spread_in(const Json& object, const char* key) {
  const Json& found = inner(object, key);
  const std::optional<double> p50 = number_in(found, "p50");
  if (!p50) return std::nullopt;
  return RateSpread{
      .p10 = number_in(found, "p10").value_or(*p50), .p50 = *p50, .p90 = number_in(found, "p90").value_or(*p50)};
}

PlannedConfiguration configuration_of(const Json& json) {
  PlannedConfiguration one;
  for (const auto& [knob, value] : inner(json, "knobs").items()) {
    if (value.is_string()) one.measured.knobs[knob] = value.text();
  }
  one.is_best = is_true(json, "best");
  one.is_chosen = is_true(json, "chosen");
  one.rate = spread_in(json, "images_per_s");
  if (one.rate) one.rate->assumed = text_in(json, "interval") == "assumed";
  if (const auto days = spread_in(json, "days")) {
    one.duration = Duration{.p10 = days->p10, .p50 = days->p50, .p90 = days->p90};
    one.duration->images_per_day = spread_in(json, "images_per_day").value_or(RateSpread{});
    one.duration->verdict = named(text_in(json, "verdict"), {BudgetVerdict::fits, BudgetVerdict::likely,
                                                             BudgetVerdict::unlikely, BudgetVerdict::over});
  }
  return one;
}

DevicePlan device_in(const Json& json) {
  DevicePlan device;
  device.line = {.fixed_bytes = number_in(json, "fixed_bytes").value_or(0),
                 .bytes_per_image = number_in(json, "bytes_per_image").value_or(0),
                 .basis = text_in(json, "basis")};
  device.limit_bytes = number_in(json, "limit_bytes").value_or(0);
  if (const auto largest = number_in(json, "largest_batch"); largest && *largest >= 0 && *largest < 1e18)
    device.largest_batch = static_cast<std::uint64_t>(*largest);
  for (const Json& part : inner(json, "parts")) {
    device.parts.push_back({text_in(part, "name"), number_in(part, "fixed_bytes").value_or(0),
                            number_in(part, "bytes_per_image").value_or(0)});
  }
  device.parts_batch = number_in(json, "parts_batch").value_or(0);
  for (const Json& one : inner(json, "points")) {
    const auto batch = number_in(one, "batch_size"), predicted = number_in(one, "predicted_bytes");
    if (!batch || !predicted || !std::isfinite(*predicted) || *predicted < 0) continue;
    device.points.push_back({.point = {.batch = *batch,
                                       .observed_bytes = number_in(one, "observed_bytes"),
                                       .out_of_memory = is_true(one, "out_of_memory")},
                             .predicted_bytes = *predicted,
                             .ratio = number_in(one, "ratio"),
                             .unexplained = is_true(one, "unexplained")});
  }
  return device;
}

HostBudget host_in(const Json& json) {
  HostBudget host;
  host.unified = is_true(json, "unified");
  host.total_bytes = number_in(json, "total_bytes").value_or(0);
  host.limit_bytes = number_in(json, "limit_bytes").value_or(0);
  host.page_cache_bytes = number_in(json, "page_cache_bytes");
  for (const Json& line : inner(json, "lines"))
    host.lines.push_back({text_in(line, "what"), text_in(line, "how"), number_in(line, "bytes").value_or(0)});
  return host;
}

VerifiedWhatIf what_if_of(const Json& json) {
  VerifiedWhatIf one;
  one.what.name = text_in(json, "name");
  one.what.predicted.per_s = number_in(json, "predicted_images_per_s").value_or(0);
  one.what.predicted.limit = named(text_in(json, "limit"), {Limit::fetch, Limit::prep, Limit::handoff, Limit::compute,
                                                            Limit::cores, Limit::storage})
                                 .value_or(Limit::none);
  one.what.gain = number_in(json, "gain").value_or(1);
  one.measured_per_s = number_in(json, "measured_images_per_s");
  one.low = number_in(json, "measured_low");
  one.high = number_in(json, "measured_high");
  one.error = number_in(json, "error");
  return one;
}

Option option_in(const Json& json) {
  Option option;
  option.name = text_in(json, "name");
  option.change = text_in(json, "change");
  option.worth = is_true(json, "worth");
  option.gain = spread_in(json, "gain").value_or(RateSpread{});
  option.days = number_in(json, "days");
  option.host_bytes = number_in(json, "host_peak_bytes");
  option.device_bytes = number_in(json, "device_peak_bytes");
  option.evidence = named(text_in(json, "evidence"), {Evidence::model, Evidence::ratio, Evidence::measured})
                        .value_or(Evidence::model);
  option.risk = named(text_in(json, "risk"), {Risk::low, Risk::medium, Risk::high}).value_or(Risk::unknown);
  option.reason = text_in(json, "reason");
  option.changes_training = is_true(json, "changes_training");
  option.training = text_in(json, "training");
  option.command = text_in(json, "command");
  return option;
}

Bundle bundle_in(const Json& json) {
  Bundle bundle;
  if (const std::string label = text_in(json, "label"); !label.empty()) bundle.label = label.front();
  bundle.title = text_in(json, "title");
  for (const Json& change : inner(json, "changes")) {
    if (change.is_string()) bundle.names.push_back(change.text());
  }
  for (const Json& command : inner(json, "commands")) {
    if (command.is_string()) bundle.commands.push_back(command.text());
  }
  bundle.gain = spread_in(json, "gain").value_or(RateSpread{});
  bundle.days = number_in(json, "days");
  bundle.epoch_hours = number_in(json, "epoch_hours");
  bundle.host_bytes = number_in(json, "host_peak_bytes");
  bundle.device_bytes = number_in(json, "device_peak_bytes");
  bundle.risk = named(text_in(json, "risk"), {Risk::low, Risk::medium, Risk::high}).value_or(Risk::unknown);
  bundle.reason = text_in(json, "reason");
  bundle.training = text_in(json, "training");
  bundle.limit = text_in(json, "limit");
  return bundle;
}

PlannedRun run_in(const Json& json) {
  PlannedRun run;
  run.input.name = text_in(json, "name");
  run.input.source = text_in(json, "source");
  for (const Json& one : inner(json, "configurations")) run.configurations.push_back(configuration_of(one));
  if (inner(json, "device_memory").is_object()) run.device = device_in(inner(json, "device_memory"));
  if (inner(json, "host_memory").is_object()) run.host = host_in(inner(json, "host_memory"));
  for (const Json& one : inner(json, "what_ifs")) run.what_ifs.push_back(what_if_of(one));
  for (const Json& one : inner(json, "options")) {
    run.options.push_back(option_in(one));
    if (const auto limit = number_in(one, "host_limit_bytes")) run.input.limits.memory_bytes = *limit;
    if (const auto limit = number_in(one, "device_limit_bytes")) run.input.device_limit_bytes = *limit;
  }
  for (const Json& one : inner(json, "bundles")) run.bundles.push_back(bundle_in(one));
  for (const Json& one : inner(json, "nodes")) {
    run.nodes.push_back({.nodes = number_in(one, "nodes").value_or(0),
                         .per_s = number_in(one, "images_per_s").value_or(0),
                         .share = number_in(one, "share").value_or(0)});
  }
  run.saturating_nodes = number_in(json, "saturating_nodes");
  run.notes = texts_in(json, "notes");
  return run;
}

}  // namespace

PlanAnswer parse_plan(const Json& json, const std::string& file) {
  if (!json.is_object() || !text_in(json, "schema").starts_with("stoker.plan/")) {
    throw Error(ErrorKind::corrupt, fmt::format("cannot read `{}`: it is not what `stoker plan` writes", file),
                "write it again with `stoker plan --run DIR`, or take it out of the folder");
  }
  PlanAnswer answer;
  answer.headline = text_in(json, "headline");
  answer.pivot = text_in(json, "pivot");
  answer.is_no = is_true(json, "answer_is_no");
  const Json& job = inner(json, "job");
  if (const auto images = number_in(job, "images")) {
    answer.has_job = true;
    answer.job.images = *images;
    answer.job.epoch_images = number_in(job, "epoch_images");
    answer.job.budget_days = number_in(job, "budget_days");
    answer.needed_per_s = number_in(job, "needed_images_per_s");
  }
  for (const Json& run : inner(json, "runs")) answer.runs.push_back(run_in(run));
  const auto chosen = number_in(json, "chosen_run");
  if (chosen && *chosen >= 0 && *chosen < static_cast<double>(answer.runs.size()))
    answer.chosen_run = static_cast<std::size_t>(*chosen);
  answer.next_command = text_in(json, "next_command");
  answer.notes = texts_in(json, "notes");
  return answer;
}

}  // namespace stoker::plan
