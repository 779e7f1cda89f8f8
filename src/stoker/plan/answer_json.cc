#include "stoker/plan/answer_json.h"

#include "stoker/base/version.h"

namespace stoker::plan {
namespace {

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}
Json known(double value) {
  return value > 0 ? Json(value) : Json(nullptr);
}

Json to_json(const RateSpread& spread) {
  return {{"p10", spread.p10}, {"p50", spread.p50}, {"p90", spread.p90}};
}

Json to_json(const PlannedConfiguration& one) {
  const Configuration& measured = one.measured;
  Json json = {{"label", text(measured.knobs)},    {"knobs", measured.knobs}, {"status", name(measured.status)},
               {"error", or_null(measured.error)}, {"best", one.is_best},     {"chosen", one.is_chosen}};
  json["images_per_s"] = one.rate ? to_json(*one.rate) : Json(nullptr);
  json["runs"] = measured.rates.size();
  json["interval"] = one.rate ? Json(one.rate->assumed ? "assumed" : "measured") : Json(nullptr);
  json["days"] = nullptr;
  json["images_per_day"] = nullptr;
  json["verdict"] = nullptr;
  json["over_days"] = nullptr;
  json["parts"] = nullptr;
  if (one.duration) {
    const Duration& duration = *one.duration;
    json["days"] = {{"p10", duration.p10}, {"p50", duration.p50}, {"p90", duration.p90}};
    json["images_per_day"] = to_json(duration.images_per_day);
    if (duration.verdict) {
      json["verdict"] = name(*duration.verdict);
      json["over_days"] = duration.over_days;
    }
    json["parts"] = {{"epoch0_days", or_null(duration.epoch0)},
                     {"training_days", duration.training},
                     {"validation_days", duration.validation},
                     {"checkpoint_days", duration.checkpoints}};
  }
  json["step_ms"] = or_null(measured.step_ms);
  json["compute_ms"] = or_null(measured.compute_ms);
  json["bound"] = or_null(measured.verdict);
  json["host_peak_bytes"] = or_null(measured.host_peak_bytes);
  json["device_allocated_bytes"] = or_null(measured.device_allocated_bytes);
  return json;
}

Json to_json(const DevicePlan& device) {
  Json points = Json::array();
  for (const Compared& one : device.points) {
    points.push_back({{"batch_size", one.point.batch},
                      {"predicted_bytes", one.predicted_bytes},
                      {"observed_bytes", or_null(one.point.observed_bytes)},
                      {"out_of_memory", one.point.out_of_memory},
                      {"ratio", or_null(one.ratio)},
                      {"unexplained", one.unexplained}});
  }
  Json parts = Json::array();
  for (const MemoryPart& part : device.parts) {
    parts.push_back(
        {{"name", part.name}, {"fixed_bytes", part.fixed_bytes}, {"bytes_per_image", part.bytes_per_image}});
  }
  return {{"basis", device.line.basis},
          {"parts", parts},
          {"parts_batch", known(device.parts_batch)},
          {"fixed_bytes", device.line.fixed_bytes},
          {"bytes_per_image", device.line.bytes_per_image},
          {"limit_bytes", known(device.limit_bytes)},
          {"largest_batch", or_null(device.largest_batch)},
          {"parameters", or_null(device.parameters)},
          {"forward_flops", or_null(device.forward_flops)},
          {"points", points}};
}

Json to_json(const HostBudget& host) {
  Json lines = Json::array();
  for (const HostLine& line : host.lines) {
    lines.push_back({{"what", line.what}, {"bytes", line.bytes}, {"how", line.how}});
  }
  return {{"unified", host.unified},
          {"lines", lines},
          {"total_bytes", host.total_bytes},
          {"limit_bytes", known(host.limit_bytes)},
          {"fits", host.fits()},
          {"shm_bytes", host.shm_bytes},
          {"shm_limit_bytes", known(host.shm_limit_bytes)},
          {"page_cache_bytes", or_null(host.page_cache_bytes)},
          {"dataset_fits_cache", or_null(host.dataset_fits_cache)},
          {"full_after_s", or_null(host.full_after_s)}};
}

Json to_json(const VerifiedWhatIf& one) {
  const WhatIf& what = one.what;
  Json json = {{"name", what.name},
               {"change", what.change},
               {"predicted_images_per_s", what.predicted.per_s},
               {"limit", name(what.predicted.limit)},
               {"gain", what.gain},
               {"more_host_bytes", what.most_bytes},
               {"evidence", name(what.evidence)},
               {"why", what.why},
               {"feasible", what.feasible},
               {"closes_gap", one.closes}};
  json["measured_images_per_s"] = or_null(one.measured_per_s);
  json["measured_low"] = or_null(one.low);
  json["measured_high"] = or_null(one.high);
  json["measured_gain"] = or_null(one.gain);
  json["noise"] = or_null(one.noise);
  json["error"] = or_null(one.error);
  json["not_run"] = or_null(one.not_run);
  return json;
}

Json to_json(const Option& option, const PlanRun& run) {
  return {{"order", option.order},
          {"name", option.name},
          {"change", option.change},
          {"worth", option.worth},
          {"gain", to_json(option.gain)},
          {"days", or_null(option.days)},
          {"host_peak_bytes", or_null(option.host_bytes)},
          {"host_limit_bytes", known(run.limits.memory_bytes)},
          {"device_peak_bytes", or_null(option.device_bytes)},
          {"device_limit_bytes", known(run.device_limit_bytes)},
          {"evidence", name(option.evidence)},
          {"risk", name(option.risk)},
          {"reason", option.reason},
          {"changes_training", option.changes_training},
          {"training", or_null(option.training)},
          {"command", or_null(option.command)}};
}

Json to_json(const Bundle& bundle) {
  return {{"label", std::string(1, bundle.label)},
          {"title", bundle.title},
          {"changes", bundle.names},
          {"gain", to_json(bundle.gain)},
          {"limit", bundle.limit},
          {"days", or_null(bundle.days)},
          {"epoch_hours", or_null(bundle.epoch_hours)},
          {"host_peak_bytes", or_null(bundle.host_bytes)},
          {"device_peak_bytes", or_null(bundle.device_bytes)},
          {"risk", name(bundle.risk)},
          {"reason", bundle.reason},
          {"training", or_null(bundle.training)},
          {"commands", bundle.commands}};
}

Json to_json(const Stages& stages) {
  const Predicted predicted = predict(stages);
  return {{"batch_size", stages.batch_size},
          {"num_workers", stages.workers},
          {"io_threads", stages.io_threads},
          {"cores", known(stages.cores)},
          {"free_cores", known(stages.free_cores)},
          {"rivals", stages.rivals},
          {"fetch_in_workers", stages.fetch_in_workers},
          {"fetch_s", stages.fetch_s},
          {"prep_s", stages.prep_s},
          {"handoff_s", stages.handoff_s},
          {"compute_s", stages.compute_s},
          {"cpu_s", stages.cpu_s},
          {"storage_per_s", known(stages.storage_per_s)},
          {"predicted_images_per_s", predicted.per_s},
          {"limit", name(predicted.limit)}};
}

Json to_json(const StoreUse& use) {
  return {{"requests", use.requests}, {"bytes", use.bytes}, {"cost", use.cost}};
}

Json to_json(const StoreCost& cost) {
  return {{"access", name(cost.access)},
          {"first_epoch", to_json(cost.first_epoch)},
          {"later_epoch", to_json(cost.later_epoch)},
          {"run", cost.run ? to_json(*cost.run) : Json(nullptr)}};
}

Json to_json(const StoreUse& use, bool has_prices) {
  Json json = to_json(use);
  if (!has_prices) json["cost"] = nullptr;
  return json;
}

Json to_json(const FleetEpoch& epoch, bool has_prices) {
  Json json = to_json(epoch.use, has_prices);
  json.update({{"seconds", epoch.seconds}, {"images_per_s", epoch.per_s}, {"limit", name(epoch.limit)}});
  return json;
}

Json to_json(const Fleet& fleet) {
  const FleetInput& input = fleet.input;
  const bool has_prices = input.prices.has_value();
  Json json = {{"samples", input.samples}, {"bytes", input.bytes}};
  json["node"] = {{"images_per_s", input.node.per_s},
                  {"limit", name(input.node.limit)},
                  {"fetch_images_per_s", known(input.node.fetch_per_s)},
                  {"nic_bytes_per_s", known(input.node.nic_bytes_per_s)},
                  {"disk_bytes_per_s", known(input.node.disk_bytes_per_s)},
                  {"cache_bytes", or_null(input.node.cache_bytes)}};
  json["store"] = {{"requests_per_s", input.store.requests_per_s},
                   {"prefixes", input.store.prefixes},
                   {"bytes_per_s", known(input.store.bytes_per_s)}};
  json["store_full_at_nodes"] = or_null(fleet.full_at);
  json["store_full_of"] = fleet.full_at ? Json(name(fleet.full_of)) : Json(nullptr);
  json["rows"] = Json::array();
  for (const FleetRow& row : fleet.rows) {
    Json run = nullptr;
    if (input.epochs) {
      run = to_json(row.run_use, has_prices);
      run["seconds"] = row.run_seconds;
    }
    json["rows"].push_back({{"nodes", row.nodes},
                            {"access", name(row.access)},
                            {"epoch_0", to_json(row.first, has_prices)},
                            {"epoch_1", to_json(row.second, has_prices)},
                            {"last_epoch", to_json(row.last, has_prices)},
                            {"run", run}});
  }
  json["changes"] = Json::array();
  for (const FleetChange& one : fleet.changes) {
    json["changes"].push_back({{"nodes", one.nodes},
                               {"what", one.what},
                               {"change", one.change},
                               {"last_epoch_s", one.last_epoch_s},
                               {"limit", name(one.limit)},
                               {"gain", one.gain}});
  }
  return json;
}

Json to_json(const PlannedRun& run, const SpellText& spell) {
  const PlanRun& input = run.input;
  Json json = {{"name", input.name}, {"source", input.source}, {"kind", name(input.kind)}};
  json["model"] = or_null(input.model);
  json["points"] = run.configurations.size();
  json["ok"] = input.choice.ok;
  Json failures = Json::object();
  for (const auto& [status, count] : input.choice.failures) failures[std::string(name(status))] = count;
  json["failures"] = failures;
  json["best"] = or_null(run.best);
  json["chosen"] = or_null(run.chosen);
  json["reason"] = input.choice.reason;
  const auto list = [](const auto& items, auto make) {
    Json all = Json::array();
    for (const auto& item : items) all.push_back(make(item));
    return all;
  };
  json["configurations"] = list(run.configurations, [](const auto& one) { return to_json(one); });
  json["device_memory"] = run.device ? to_json(*run.device) : Json(nullptr);
  json["host_memory"] = run.host ? to_json(*run.host) : Json(nullptr);
  json["ledger"] = input.stages ? to_json(*input.stages) : Json(nullptr);
  json["what_ifs"] = list(run.what_ifs, [](const auto& one) { return to_json(one); });
  json["verified_images_per_s"] = or_null(run.verified_per_s);
  json["target_images_per_s"] = nullptr;
  if (input.target_per_s) json["target_images_per_s"] = {input.target_per_s->first, input.target_per_s->second};
  json["epochs"] = nullptr;
  if (run.epochs) {
    json["epochs"] = {{"first_s", run.epochs->first_s},
                      {"later_s", run.epochs->later_s},
                      {"fetch_stall_s", run.epochs->fetch_stall_s},
                      {"later_images_per_s_per_worker", run.epochs->later_per_worker},
                      {"local_copy_gain_first", run.epochs->local_copy_first},
                      {"local_copy_gain_later", run.epochs->local_copy_later}};
  }
  json["nodes"] = list(run.nodes, [](const ScaleOut& one) {
    return Json{{"nodes", one.nodes}, {"images_per_s", one.per_s}, {"share", one.share}};
  });
  json["saturating_nodes"] = or_null(run.saturating_nodes);
  json["fleet"] = run.fleet ? to_json(*run.fleet) : Json(nullptr);
  json["costs"] = list(run.costs, [](const StoreCost& cost) { return to_json(cost); });
  json["options"] = list(run.options, [&](const Option& option) { return to_json(option, input); });
  json["bundles"] = list(run.bundles, [](const Bundle& bundle) { return to_json(bundle); });
  json["notes"] = spell_all(run.notes, spell);
  return json;
}

}  // namespace

Json to_json(const PlanAnswer& answer, const SpellText& spell) {
  Json json = {{"schema", "stoker.plan/1"}, {"stoker_version", kVersion}};
  json["headline"] = answer.headline;
  json["pivot"] = or_null(answer.pivot);
  json["answer_is_no"] = answer.is_no;
  json["job"] = nullptr;
  if (answer.has_job) {
    const Job& job = answer.job;
    json["job"] = {{"images", job.images},
                   {"epoch_images", or_null(job.epoch_images)},
                   {"epochs", job.epoch_images ? Json(job.epochs()) : Json(nullptr)},
                   {"budget_days", or_null(job.budget_days)},
                   {"validation_s_per_epoch", job.validation_s},
                   {"checkpoint_s", job.checkpoint_s},
                   {"checkpoint_every_s", job.checkpoint_every_s},
                   {"needed_images_per_s", or_null(answer.needed_per_s)}};
  }
  json["prices"] = nullptr;
  if (answer.prices) {
    json["prices"] = {{"per_1000_requests", answer.prices->per_1000_requests},
                      {"per_gb", answer.prices->per_gb},
                      {"cache_limit_bytes", or_null(answer.prices->cache_limit_bytes)}};
  }
  json["chosen_run"] = or_null(answer.chosen_run);
  json["runs"] = Json::array();
  for (const PlannedRun& run : answer.runs) json["runs"].push_back(to_json(run, spell));
  json["next_command"] = or_null(answer.next_command);
  json["notes"] = spell_all(answer.notes, spell);
  return json;
}

}  // namespace stoker::plan
