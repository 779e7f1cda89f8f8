// HostFacts as a line, as JSON, and as sentences of the answer.
#include <algorithm>

#include <fmt/format.h>

#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/measure/host.h"
#include "stoker/meter/stages.h"

namespace stoker::measure {
namespace {

constexpr double kOthersShown = 0.1;  // of the cores

// What is not known is "unknown", never 0 and never left out.
template <class Value>
Json known(const std::optional<Value>& value) {
  return value ? Json(*value) : Json("unknown");
}
Json known_bytes(std::uint64_t bytes) {
  return bytes > 0 ? Json(bytes) : Json("unknown");
}

const std::string* main_file_system(const HostFacts& facts) {
  const auto most = std::max_element(facts.data_file_systems.begin(), facts.data_file_systems.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == facts.data_file_systems.end() ? nullptr : &most->first;
}

}  // namespace

Json to_json(const HostFacts& facts) {
  Json json = {{"seconds", facts.seconds}};
  json["cores"] = {{"available", facts.cores},
                   {"used", facts.cores_used},
                   {"used_by_others", known(facts.cores_of_others)},
                   {"limited_by", facts.cores_limited_by.empty() ? Json(nullptr) : Json(facts.cores_limited_by)}};
  json["memory"] = {{"limit_bytes", facts.memory_limit_bytes},
                    {"available_bytes", known(facts.memory_available_bytes)},
                    {"pss_peak_bytes", known_bytes(facts.pss_peak_bytes)}};
  json["disk"] = {{"read_bytes_per_s", known(facts.disk_read_bytes_per_s)},
                  {"write_bytes_per_s", known(facts.disk_write_bytes_per_s)},
                  {"page_cache_share", known(facts.page_cache_share)}};
  json["network"] = {{"received_bytes_per_s", known(facts.network_received_bytes_per_s)},
                     {"sent_bytes_per_s", known(facts.network_sent_bytes_per_s)}};
  for (const char* resource : {"cpu", "io", "memory"}) {
    const auto it = facts.pressure.find(resource);
    json["pressure"][resource] = it == facts.pressure.end() ? Json("unknown") : Json(it->second);
  }
  json["shm"] = {{"used_peak_bytes", known(facts.shm_used_peak_bytes)}, {"total_bytes", known(facts.shm_total_bytes)}};
  json["open_descriptors"] = {{"peak", known_bytes(facts.open_descriptors_peak)},
                              {"limit", facts.open_descriptors_limit}};
  json["data_file_systems"] = Json::array();
  for (const auto& [name, count] : facts.data_file_systems)
    json["data_file_systems"].push_back({{"name", name}, {"seen", count}});
  json["accelerators"] = Json("unknown");
  if (!facts.accelerators.empty()) {
    json["accelerators"] = Json::array();
    for (const AcceleratorReading& one : facts.accelerators) {
      json["accelerators"].push_back({{"name", one.name},
                                      {"busy", known(one.busy)},
                                      {"memory_used_bytes", known(one.memory_used_bytes)},
                                      {"memory_total_bytes", known(one.memory_total_bytes)}});
    }
    json["accelerator_swings"] = facts.accelerator_swings;
  }
  json["processes"] = Json::array();
  for (const ProcessFacts& process : facts.processes) {
    json["processes"].push_back({{"pid", process.pid},
                                 {"name", process.name},
                                 {"role", process.is_worker ? "worker" : "other"},
                                 {"cpu_s", process.cpu_s},
                                 {"delay_s", known(process.delay_s)},
                                 {"disk_wait_share", process.disk_wait_share},
                                 {"pss_bytes", known_bytes(process.pss_bytes)},
                                 {"uss_bytes", known_bytes(process.uss_bytes)},
                                 {"pss_peak_bytes", known_bytes(process.pss_peak_bytes)},
                                 {"growth_bytes_per_s", known(process.growth_bytes_per_s)},
                                 {"open_descriptors", known_bytes(process.open_descriptors)}});
  }
  return json;
}

std::string host_line(const HostFacts& facts, bool device_is_told) {
  std::string text =
      fmt::format("{:.1f} of {:.3g} cores used{}", facts.cores_used, facts.cores,
                  facts.cores_limited_by.empty() ? "" : fmt::format(" (limit: {})", facts.cores_limited_by));
  if (facts.cores_of_others.value_or(0) >= kOthersShown * facts.cores)
    text += fmt::format(", {:.1f} by other programs", *facts.cores_of_others);
  if (facts.pss_peak_bytes > 0)
    text +=
        fmt::format(", memory {} of {}", format_bytes(facts.pss_peak_bytes), format_bytes(facts.memory_limit_bytes));
  if (facts.disk_read_bytes_per_s && *facts.disk_read_bytes_per_s >= 50e3)
    text += fmt::format(", disk {} MB/s", format_rate(*facts.disk_read_bytes_per_s / 1e6));
  if (const std::string* file_system = main_file_system(facts)) text += fmt::format(", data on {}", *file_system);
  if (facts.accelerators.empty() && !device_is_told) text += ", accelerator unknown";
  for (const AcceleratorReading& one : facts.accelerators) {
    text += fmt::format(", {} {} busy", one.name, one.busy ? fmt::format("{:.0f} %", 100 * *one.busy) : "unknown");
    if (one.memory_used_bytes && one.memory_total_bytes)
      text += fmt::format(" ({} of {})", format_bytes(*one.memory_used_bytes), format_bytes(*one.memory_total_bytes));
  }
  return text;
}

Offer offer_of(const HostFacts& facts) {
  Offer offer;
  offer.cores = facts.cores;
  offer.cores_limited_by = facts.cores_limited_by;
  offer.cores_of_others = meter::cores_taken(facts.cores, facts.cores_used, facts.cores_of_others.value_or(0));
  offer.memory_bytes = facts.memory_available_bytes.value_or(0);
  std::uint64_t workers = 0, bytes = 0;
  std::vector<double> growth;
  for (const ProcessFacts& process : facts.processes) {
    if (!process.is_worker) continue;
    if (process.uss_bytes > 0) ++workers, bytes += process.uss_bytes;
    if (process.growth_bytes_per_s) growth.push_back(*process.growth_bytes_per_s);
  }
  if (workers > 0) offer.worker_bytes = bytes / workers;
  if (!growth.empty()) {
    std::nth_element(growth.begin(), growth.begin() + static_cast<std::ptrdiff_t>(growth.size() / 2), growth.end());
    offer.worker_bytes_per_s = growth[growth.size() / 2];
  }
  if (const std::string* file_system = main_file_system(facts)) offer.data_file_system = *file_system;
  return offer;
}

void note_host(Answer& answer, const HostFacts& facts) {
  if (facts.accelerator_swings >= 5) {
    answer.notes.push_back(fmt::format(
        "the accelerator went from full to idle and back {} times: batches come in bursts", facts.accelerator_swings));
  }
  for (const AcceleratorReading& one : facts.accelerators) {
    if (!one.memory_used_bytes || !one.memory_total_bytes || *one.memory_total_bytes == 0) continue;
    if (static_cast<double>(*one.memory_used_bytes) > 0.9 * static_cast<double>(*one.memory_total_bytes))
      answer.notes.push_back(
          fmt::format("{} holds {} of {}: a larger batch needs memory for its activations, not only for its input",
                      one.name, format_bytes(*one.memory_used_bytes), format_bytes(*one.memory_total_bytes)));
  }
  if (facts.shm_used_peak_bytes && facts.shm_total_bytes &&
      static_cast<double>(*facts.shm_used_peak_bytes) > 0.8 * static_cast<double>(*facts.shm_total_bytes))
    answer.notes.push_back(fmt::format("/dev/shm is nearly full ({} of {}): workers die of a bus error when it is",
                                       format_bytes(*facts.shm_used_peak_bytes), format_bytes(*facts.shm_total_bytes)));
  if (facts.open_descriptors_limit > 0 &&
      static_cast<double>(facts.open_descriptors_peak) > 0.8 * static_cast<double>(facts.open_descriptors_limit))
    answer.notes.push_back(fmt::format("{} of {} descriptors are open: raise `ulimit -n`", facts.open_descriptors_peak,
                                       facts.open_descriptors_limit));
}

}  // namespace stoker::measure
