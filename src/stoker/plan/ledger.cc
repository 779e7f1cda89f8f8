#include "stoker/plan/ledger.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"

namespace stoker::plan {
namespace {

constexpr double kFetchShows = 0.2;  // of the time: a cold run that waited so long for bytes shows what the disk gives

constexpr double kCrowded = 0.95;  // of the cores

double number_or(const Json& json, const char* key, double fallback) {
  return json.contains(key) && json.at(key).is_number() ? json.at(key).get<double>() : fallback;  // else "unknown"
}

// The what-ifs count on no core that other programs had while it was measured.
void note_rivals(const Json& ledger, double per_s, Stages& stages, PlanRun& run) {
  const double usable = number_or(ledger, "usable_cores", 0);
  if (usable <= 0 || usable >= kCrowded * stages.cores) return;
  take_out_rivals(stages, per_s * stages.cpu_s);
  run.notes.push_back(
      fmt::format("other programs took {:.1f} of {:g} cores while the ledger was measured: the what-ifs assume that "
                  "they still do",
                  stages.cores - usable, stages.cores));
}

void read_steps(const Json& json, PlanRun& run) {
  const Json& ledger = json.at("ledger");
  Stages stages;
  stages.batch_size = ledger.at("batch_size").get<double>();
  stages.workers = ledger.at("num_workers").get<double>();
  stages.io_threads = ledger.at("io_threads").get<double>();
  stages.cores = ledger.at("cores").get<double>();
  stages.fetch_s = ledger.at("fetch_s").get<double>();
  stages.prep_s = ledger.at("prep_s").get<double>();
  stages.handoff_s = ledger.at("handoff_s").get<double>();
  stages.compute_s = ledger.at("compute_s").get<double>();
  stages.cpu_s = ledger.at("cpu_s").get<double>();
  note_rivals(ledger, json.at("samples_per_s").get<double>(), stages, run);
  Setting& setting = run.setting;
  setting.sample_bytes = ledger.at("sample_bytes").get<double>();
  setting.decoded_bytes = ledger.at("decoded_bytes").get<double>();
  setting.dataset_bytes = ledger.at("dataset_bytes").get<double>();
  setting.dataset_samples = number_or(ledger, "dataset_samples", 0);
  const std::string cache = ledger.at("cache").text(), storage = ledger.at("storage").text();
  setting.warm = cache == "warm";
  setting.decodes = ledger.at("decodes").get<bool>();
  setting.decodes_jpeg = ledger.value("decodes_jpeg", false);
  setting.is_random = ledger.value("random", false);
  setting.is_file_per_sample = ledger.at("file_per_sample").get<bool>();
  for (const Access access : {Access::direct, Access::mmap, Access::ram}) {
    if (storage == name(access)) setting.access = access;
  }
  const bool is_remote = json.value("address", "").find("://") != std::string::npos;
  if (is_remote) setting.access = Access::remote;
  if (is_remote && ledger.at("fetch_share").get<double>() > kFetchShows) {
    stages.storage_per_s = json.at("samples_per_s").get<double>();  // of the store: it says nothing about a disk
  } else if (cache.starts_with("cold") && ledger.at("fetch_share").get<double>() > kFetchShows) {
    stages.storage_per_s = json.at("samples_per_s").get<double>();
    setting.disk_bytes_per_s = stages.storage_per_s * setting.sample_bytes;
  }
  run.stages = stages;
  run.seen_per_s = json.at("samples_per_s").get<double>();
}

// What the job's processes take, as they were seen last.
void read_host(const Json& host, PlanRun& run) {
  if (host.contains("memory")) run.limits.memory_bytes = number_or(host["memory"], "limit_bytes", 0);
  if (host.contains("shm")) run.limits.shm_bytes = number_or(host["shm"], "total_bytes", 0);
  if (!host.contains("processes")) return;
  double workers = 0;
  for (const Json& process : host["processes"]) {
    if (process.at("role") != "worker") {
      run.host.main_bytes += number_or(process, "pss_bytes", 0);
      continue;
    }
    workers += 1;
    run.host.worker_bytes = std::max(run.host.worker_bytes, number_or(process, "uss_bytes", 0));
    run.host.worker_growth_per_s = std::max(run.host.worker_growth_per_s, number_or(process, "growth_bytes_per_s", 0));
  }
  run.host.workers = std::max(workers, run.stages->workers);
}

void read_measured(const Json& json, PlanRun& run) {
  if (json.at("main_loader").is_null()) throw Error(ErrorKind::usage, "no loader was measured");
  const Json& loader = json.at("loaders").at(json.at("main_loader").get<std::size_t>());
  const Json &workers = loader.at("workers"), &settings = loader.at("settings");
  meter::LoaderFigures figures;
  figures.batch_size = number_or(settings, "batch_size", 1);
  figures.num_workers = settings.at("num_workers").get<double>();
  figures.fetch_ms = workers.at("fetch_ms_per_batch").get<double>();
  figures.prep_ms = workers.at("prep_ms_per_batch").get<double>();
  figures.delay_ms = number_or(workers, "delay_ms_per_batch", 0);
  figures.collate_ms = workers.at("collate_ms_per_batch").get<double>();
  figures.collate_delay_ms = number_or(workers, "collate_delay_ms_per_batch", 0);
  const Json& compute = loader.at("total").at("compute");
  figures.compute_ms = compute.at("ms_per_step").get<double>();
  figures.compute_cpu_ms = number_or(compute, "cpu_ms_per_step", 0);
  if (json.contains("host") && json["host"].is_object() && json["host"].contains("cores")) {
    const Json& cores = json["host"]["cores"];
    figures.cores = number_or(cores, "available", 0);
    figures.cores_of_others =
        meter::cores_taken(figures.cores, number_or(cores, "used", 0), number_or(cores, "used_by_others", 0));
  }
  run.stages = meter::stages_of(figures);
  if (const Json& start = loader["total"]["wait"]["handoff"]["start"]["share"]; start.is_number())
    run.start_share = std::clamp(start.get<double>(), 0.0, 0.9);
  run.setting.is_ours = false;
  run.seen_per_s = number_or(loader, "samples_per_s", 0);
  run.host = {};
  if (loader.at("batch").is_object()) run.host.batch_bytes = number_or(loader["batch"], "bytes", 0);
  run.host.prefetch_factor = number_or(settings, "prefetch_factor", 2);
  run.host.pin_memory = settings.value("pin_memory", false);
  if (run.command.empty() && json.contains("command") && json["command"].is_array())
    run.command = json["command"].get<std::vector<std::string>>();
  if (loader.contains("file") && loader["file"].is_string())
    run.place = fmt::format("{}:{:g}", std::filesystem::path(loader["file"].get<std::string>()).filename().string(),
                            number_or(loader, "line", 0));
  if (figures.cores_of_others > 0)
    run.notes.push_back(fmt::format(
        "other programs kept {:.1f} of {:g} cores busy while it was measured: the what-ifs assume that they still do",
        figures.cores_of_others, figures.cores));
  if (json.contains("host") && json["host"].is_object()) read_host(json["host"], run);
}

}  // namespace

void read_ledger(const Json& json, const std::string& file, PlanRun& run) {
  const std::string schema = json.is_object() ? json.value("schema", "") : "";
  const auto refuse = [&](const std::string& why) {
    return Error(ErrorKind::corrupt, fmt::format("cannot take a ledger from `{}`: {}", file, why),
                 "make it with `stoker load DATA --bench-steps 50 --json`, or `stoker measure --json`");
  };
  try {
    if (schema == "stoker.steps/1") {
      read_steps(json, run);
    } else if (schema == "stoker.measure/1") {
      read_measured(json, run);
    } else {
      throw Error(ErrorKind::usage, "its schema is neither stoker.steps/1 nor stoker.measure/1");
    }
  } catch (const Error& error) {
    throw refuse(error.message());
  }
}

PlanRun run_of_ledger(const Json& json, const std::string& file) {
  PlanRun run;
  run.kind = PlanSource::ledger;
  run.source = file;
  run.name = std::filesystem::path(file).stem().string();
  read_ledger(json, file, run);
  if (json.value("schema", "") == "stoker.steps/1") {  // of our own loader: its command is known
    run.address = json.value("address", "");
    run.shuffle = json.contains("shuffle") && json.at("shuffle") != Json(false);
    if (json.contains("flags")) run.flags = json.at("flags").get<std::vector<std::string>>();
  }
  tune::Row row{.trial = 1};
  row.knobs = {{"batch_size", fmt::format("{:g}", run.stages->batch_size)},
               {"num_workers", fmt::format("{:g}", run.stages->workers)}};
  if (const Json& settings = json["loaders"]; settings.is_array() && json["main_loader"].is_number()) {
    const Json& persistent = settings[json["main_loader"].get<std::size_t>()]["settings"]["persistent_workers"];
    if (persistent.is_boolean()) row.knobs["persistent_workers"] = persistent.get<bool>() ? "true" : "false";
  }
  row.images_per_s = run.seen_per_s > 0 ? run.seen_per_s : predict(*run.stages).per_s;
  run.rows = {row};
  return run;
}

}  // namespace stoker::plan
