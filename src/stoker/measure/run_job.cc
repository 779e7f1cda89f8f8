#include "stoker/measure/run_job.h"

#include <csignal>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/units.h"
#include "stoker/measure/hook.h"
#include "stoker/os/child.h"
#include "stoker/os/file.h"
#include "stoker/os/read_file.h"
#include "stoker/os/temporary_folder.h"

namespace stoker::measure {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> lines_below(const std::string& folder) {
  std::vector<std::string> lines;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string text = os::read_text(entry.path().string());
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      lines.push_back(text.substr(at, end - at));
      at = end + 1;
    }
  }
  return lines;
}

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<double> number_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::uint64_t count_of(const Json& json, const char* key) {
  const double value = number_of(json, key).value_or(0);
  return value > 0 ? static_cast<std::uint64_t>(value) : 0;
}

}  // namespace

std::string SuppliedLoader::text() const {
  const std::string where =
      file.empty() ? "a DataLoader" : fmt::format("{}:{}", std::filesystem::path(file).filename().string(), line);
  if (!replaced) return fmt::format("{}: not replaced: {}", where, why);
  std::string text =
      fmt::format("{}: replaced, {} samples, {} samples/s", where, format_count(samples), format_rate(samples_per_s));
  if (gain)
    text += fmt::format("; the job's own code took about {:.{}f}x as long for the first samples", *gain,
                        *gain < 9.95 ? 1 : 0);
  if (by_python > 0) text += fmt::format("; the job's own code made {} samples", format_count(by_python));
  return text;
}

std::vector<SuppliedLoader> supplied_loaders(const std::vector<std::string>& lines) {
  std::map<std::pair<int, std::uint64_t>, SuppliedLoader> found;
  for (const std::string& line : lines) {
    const Json json = Json::parse_or_null(line);
    if (!json.is_object()) continue;
    SuppliedLoader loader;
    loader.pid = static_cast<int>(count_of(json, "pid"));
    loader.file = text_of(json, "file");
    loader.name = text_of(json, "name");
    loader.line = count_of(json, "line");
    if (number_of(json, "rank")) loader.rank = count_of(json, "rank");
    const auto replaced = json.find("replaced");
    loader.replaced = replaced != json.end() && replaced->is_boolean() && replaced->get<bool>();
    loader.why = text_of(json, "why");
    loader.samples = count_of(json, "samples");
    loader.samples_per_s = number_of(json, "samples_per_s").value_or(0);
    loader.gain = number_of(json, "gain");
    loader.by_python = count_of(json, "by_python");
    found[{loader.pid, count_of(json, "loader")}] = std::move(loader);
  }
  std::vector<SuppliedLoader> loaders;
  loaders.reserve(found.size());
  for (auto& [key, loader] : found) loaders.push_back(std::move(loader));
  return loaders;
}

Json to_json(const SuppliedLoader& loader) {
  Json json = {{"pid", loader.pid}, {"file", loader.file.empty() ? Json(nullptr) : Json(loader.file)}};
  json["line"] = loader.file.empty() ? Json(nullptr) : Json(loader.line);
  json["name"] = loader.name;
  json["rank"] = loader.rank ? Json(*loader.rank) : Json(nullptr);
  json["replaced"] = loader.replaced;
  json["why"] = loader.replaced ? Json(nullptr) : Json(loader.why);
  json["samples"] = loader.samples;
  json["samples_per_s"] = loader.samples_per_s;
  json["gain"] = loader.gain ? Json(*loader.gain) : Json(nullptr);
  json["by_python"] = loader.by_python;
  json["text"] = loader.text();
  return json;
}

RanJob run_job(const RunJobOptions& options) {
  const os::TemporaryFolder folder("stoker-run-");
  std::map<std::string, std::string> environment = install_hook(folder.path());
  environment.erase("STOKER_MEASURE_DIR");
  const std::string records = folder.path() + "/loaders";
  os::make_folders(records);
  environment["STOKER_RUN_DIR"] = records;
  if (options.supply) environment["STOKER_SUPPLY"] = "1";
  if (!options.settings.empty()) environment["STOKER_SETTINGS"] = options.settings;
  if (options.quiet) environment["STOKER_RUN_QUIET"] = "1";

  os::SignalGate gate;
  os::Child child(options.command, environment);
  std::optional<os::Ended> ended;
  while (!(ended = child.ended())) {
    const auto caught = gate.wait(100ms);
    if (caught && caught->signal != SIGCHLD && !caught->reached_group) child.send(caught->signal);
  }
  return {ended->code, supplied_loaders(lines_below(records))};
}

}  // namespace stoker::measure
