#include "stoker/report/measure_json.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stoker/base/csv_text.h"
#include "stoker/base/error.h"
#include "stoker/os/read_file.h"
#include "stoker/tune/knobs.h"
#include "stoker/tune/recorded_run.h"

namespace stoker::report {
namespace {

constexpr double kMostMs = 1e12;

[[noreturn]] void refuse_answer(const std::string& place, const std::string& why) {
  throw Error(ErrorKind::corrupt, fmt::format("cannot read `{}/measure.json`: {}", place, why),
              "give the folder that `stoker measure --out` wrote");
}

// Figures that no job has are refused, not drawn.
double ms_at(const std::string& place, const Json& steps, std::initializer_list<const char*> path) {
  const double ms = number_at(steps, path).value_or(0);
  if (!std::isfinite(ms) || ms < 0 || ms > kMostMs)
    refuse_answer(place, fmt::format("{} ms per step for `{}` cannot be", ms, fmt::join(path, ".")));
  return ms;
}

StageTimes times_of(const std::string& place, const Json& steps) {
  return {.compute_ms = ms_at(place, steps, {"compute", "ms_per_step"}),
          .h2d_ms = ms_at(place, steps, {"h2d", "ms_per_step"}),
          .fetch_ms = ms_at(place, steps, {"wait", "fetch", "ms_per_step"}),
          .prep_ms = ms_at(place, steps, {"wait", "prep", "ms_per_step"}),
          .handoff_ms = ms_at(place, steps, {"wait", "handoff", "ms_per_step"})};
}

std::size_t count_at(const Json& json, const char* key) {
  const double number = number_at(json, {key}).value_or(0);
  return std::isfinite(number) && number > 0 && number < 1e15 ? static_cast<std::size_t>(number) : 0;
}

const Json* main_loader(const Json& answer) {
  const Json& loaders = answer["loaders"];
  const std::size_t at = count_at(answer, "main_loader");
  return loaders.is_array() && at < loaders.size() ? &loaders.at(at) : nullptr;
}

MeasuredLoader loader_of(const std::string& place, const Json& json) {
  MeasuredLoader loader{.name = text_at(json, "name"),
                        .file = text_at(json, "file"),
                        .line = count_at(json, "line"),
                        .settings = facts_of(json["settings"]),
                        .samples_per_s = number_at(json, {"corrected_samples_per_s"}),
                        .batch_bytes = number_at(json, {"batch", "bytes"}),
                        .torch = text_at(json["batch"], "torch"),
                        .device = text_at(json["batch"], "device")};
  if (!json["epochs"].is_array()) return loader;
  for (const Json& epoch : json["epochs"])
    loader.epochs.push_back({.epoch = count_at(epoch, "epoch"), .times = times_of(place, epoch)});
  return loader;
}

std::vector<MeasuredRank> ranks_of(const std::string& place, const Json& loaders) {
  struct Found {
    MeasuredRank rank;
    bool trains = false;
    double waited_ms = 0;
  };
  std::map<std::size_t, Found> ranks;
  if (!loaders.is_array()) return {};
  for (const Json& json : loaders) {
    const Json& total = json["total"];
    if (!total.is_object()) continue;
    Found found{.rank = {.rank = count_at(json, "rank"),
                         .world_size = std::max<std::size_t>(1, count_at(json, "world_size")),
                         .steps = count_at(total, "steps"),
                         .step_ms = ms_at(place, total, {"step_ms"}),
                         .times = times_of(place, total),
                         .bound = text_at(json["verdict"], "bound"),
                         .samples_per_s = number_at(json, {"corrected_samples_per_s"})},
                .trains = text_at(json, "role") != "val"};
    MeasuredRank& rank = found.rank;
    const double wait_ms = rank.times.fetch_ms + rank.times.prep_ms + rank.times.handoff_ms;
    rank.wait_share = rank.step_ms > 0 ? std::min(1.0, wait_ms / rank.step_ms) : 0;
    found.waited_ms = wait_ms * static_cast<double>(rank.steps);
    const auto [at, is_new] = ranks.try_emplace(rank.rank, found);
    if (is_new) continue;
    if (std::pair(found.trains, found.waited_ms) > std::pair(at->second.trains, at->second.waited_ms))
      at->second = found;
  }
  std::vector<MeasuredRank> all;
  for (const auto& [number, found] : ranks) all.push_back(found.rank);
  return all;
}

MeasuredHost host_of(const Json& json) {
  MeasuredHost host{.cores = number_at(json, {"cores", "available"}),
                    .cores_used = number_at(json, {"cores", "used"}),
                    .memory_limit_bytes = number_at(json, {"memory", "limit_bytes"}),
                    .memory_peak_bytes = number_at(json, {"memory", "pss_peak_bytes"}),
                    .disk_bytes_per_s = number_at(json, {"disk", "read_bytes_per_s"}),
                    .page_cache_share = number_at(json, {"disk", "page_cache_share"}),
                    .network_bytes_per_s = number_at(json, {"network", "received_bytes_per_s"}),
                    .cpu_pressure = number_at(json, {"pressure", "cpu"}),
                    .io_pressure = number_at(json, {"pressure", "io"}),
                    .memory_pressure = number_at(json, {"pressure", "memory"})};
  if (const Json& systems = json["data_file_systems"]; systems.is_array() && !systems.empty())
    host.data_file_system = text_at(systems.front(), "name");
  if (const Json& devices = json["accelerators"]; devices.is_array()) {
    host.accelerators.emplace();
    for (const Json& device : devices) {
      host.accelerators->push_back({.name = text_at(device, "name"),
                                    .busy = number_at(device, {"busy"}),
                                    .memory_used_bytes = number_at(device, {"memory_used_bytes"}),
                                    .memory_total_bytes = number_at(device, {"memory_total_bytes"})});
    }
  }
  return host;
}

}  // namespace

MeasuredJob parse_measured_job(const Json& json, const std::string& place) {
  if (!json.is_object()) refuse_answer(place, "it is no JSON object");
  if (!text_at(json, "schema").starts_with("stoker.measure/")) refuse_answer(place, "its schema is not stoker.measure");
  const Json& total = json["total"];
  if (!total.is_object()) refuse_answer(place, "it has no `total`");
  MeasuredJob job{.place = place,
                  .command = strings_at(json, "command"),
                  .headline = text_at(json, "headline"),
                  .seconds = number_at(json, {"seconds"}).value_or(0),
                  .exit_code = json["exit_code"].as<int>().value_or(0),
                  .steps = count_at(total, "steps"),
                  .step_ms = number_at(total, {"step_ms"}).value_or(0),
                  .times = times_of(place, total),
                  .why = strings_at(json, "why"),
                  .notes = strings_at(json, "notes"),
                  .advice = strings_at(json, "advice")};
  if (const Json& verdict = json["verdict"]; verdict.is_object()) {
    job.verdict = MeasuredVerdict{.bound = text_at(verdict, "bound"),
                                  .share = {.value = number_at(verdict, {"share"}).value_or(0),
                                            .low = number_at(verdict, {"ci_low"}),
                                            .high = number_at(verdict, {"ci_high"})},
                                  .gain = number_at(verdict, {"gain"})};
  }
  job.ranks = ranks_of(place, json["loaders"]);
  if (const Json* loader = main_loader(json)) job.loader = loader_of(place, *loader);
  if (json["host"].is_object()) job.host = host_of(json["host"]);
  return job;
}

std::vector<MeasuredStep> parse_steps(std::string_view csv, const std::string& place) {
  std::vector<MeasuredStep> steps;
  std::vector<CsvField> fields;
  std::vector<std::string> header;
  std::string rank, loader;
  std::size_t line = 0;
  for (std::size_t at = 0; at < csv.size();) {
    const CsvRow row = read_row(csv, at, fields);
    at = row.end;
    ++line;
    if (row.is_blank) continue;
    if (header.empty()) {
      for (const CsvField& field : fields) header.push_back(field.text());
      continue;
    }
    const auto cell = [&](std::string_view name) -> std::string {
      const auto found = std::find(header.begin(), header.end(), name);
      const auto i = static_cast<std::size_t>(found - header.begin());
      return found == header.end() || i >= fields.size() ? "" : fields[i].text();
    };
    const auto number = [&](std::string_view name) {
      const std::string text = cell(name);
      const auto value = tune::number_of(text);
      if (!value || *value < 0) {
        throw Error(ErrorKind::corrupt,
                    fmt::format("cannot read `{}/steps.csv`, line {}: {} is `{}`, not a number that it can be", place,
                                line, name, text));
      }
      return *value;
    };
    if (cell("role") != "train") continue;
    if (steps.empty()) rank = cell("rank"), loader = cell("loader");
    if (cell("rank") != rank || cell("loader") != loader) continue;
    steps.push_back({.asked_s = number("asked_s"),
                     .step_s = number("step_ms") / 1e3,
                     .compute_s = number("compute_ms") / 1e3,
                     .ready = number("ready")});
  }
  return steps;
}

MeasuredJob read_measured_job(const std::string& folder) {
  const std::string file = folder + "/measure.json", steps = folder + "/steps.csv";
  MeasuredJob job = parse_measured_job(Json::parse(os::read_text(file), file), folder);
  job.files = tune::files_of(folder, {"measure.json", "steps.csv"});
  if (os::exists(steps)) job.training = parse_steps(os::read_text(steps), folder);
  return job;
}

}  // namespace stoker::report
