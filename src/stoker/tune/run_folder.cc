#include "stoker/tune/run_folder.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/json.h"
#include "stoker/os/file.h"
#include "stoker/os/isolated.h"
#include "stoker/os/read_file.h"
#include "stoker/tune/config_json.h"
#include "stoker/tune/results_csv.h"

namespace stoker::tune {
namespace {

// What makes two runs the same experiment: not the machine it ran on, nor how long it may take.
Json experiment_of(const RunConfig& config) {
  Json same = to_json(config);
  for (const char* key : {"environment", "stoker_version", "data"}) same.erase(key);
  return same;
}

// Rates of two data sets in one run would be compared with each other. A run that did not note its data, or whose data
// only the job knows, may go on.
void require_same_data(const std::string& path, const std::optional<DataFacts>& now,
                       const std::optional<DataFacts>& then) {
  if (!now || !then || (now->samples == then->samples && now->fingerprint == then->fingerprint)) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("cannot resume `{}`: its data has changed since: {}", path,
                  now->samples != then->samples ? fmt::format("{} samples then, {} now", then->samples, now->samples)
                                                : "the same number of samples, but other names, sizes or labels"),
      "start a new run: rates of two data sets do not compare");
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

RunFolder::RunFolder(std::string path, const RunConfig& config) : path_(std::move(path)) {
  for (const Knob& knob : config.knobs) knobs_.push_back(knob.name);
}

void RunFolder::lock() {
  const std::string file = path_ + "/.lock";
  int error_number = 0;
  lock_ = os::FileLock::try_take(file, error_number);
  if (lock_) return;
  if (error_number != EWOULDBLOCK) throw system_error(error_number, "open", file);
  throw Error(ErrorKind::unavailable, fmt::format("another tuner works in `{}`", path_),
              format_text("wait for it, or give another folder with {}", option("out")));
}

RunFolder RunFolder::make(const std::string& path, const RunConfig& config) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_empty(path, ignored)) {
    throw Error(ErrorKind::usage, fmt::format("`{}` is not empty", path),
                format_text("continue it with {}, or give another folder with {}", option("resume"), option("out")));
  }
  os::make_folders(path + "/trials");
  RunFolder folder(path, config);
  folder.lock();
  os::write_file(path + "/config.json", to_json(config).dump(2) + "\n");
  os::write_file(path + "/results.csv", results_header(folder.knobs_));
  folder.csv_ = os::AppendFile(path + "/results.csv");
  return folder;
}

void RunFolder::discard() noexcept {
  std::error_code ignored;
  for (const auto& trial : std::filesystem::directory_iterator(path_ + "/trials", ignored)) {
    if (std::filesystem::exists(trial.path() / "stdout", ignored)) return;
  }
  if (!rows_.empty()) return;
  for (const char* name : {"trials", "config.json", "results.csv", "subset.json", ".lock"}) {
    std::filesystem::remove_all(path_ + "/" + name, ignored);
  }
  std::filesystem::remove(path_, ignored);
}

RunFolder RunFolder::resume(const std::string& path, const RunConfig& config) {
  RunFolder folder(path, config);
  std::error_code ignored;
  if (!std::filesystem::exists(path + "/config.json", ignored)) {
    throw Error(ErrorKind::not_found, fmt::format("cannot resume `{}`: it has no config.json", path),
                "give the folder that an earlier `stoker tune` named");
  }
  folder.lock();
  const RunConfig before = parse_config(Json::parse(os::read_text(path + "/config.json"), path + "/config.json"));
  const Json now = experiment_of(config), then = experiment_of(before);
  if (now != then) {
    std::string key = "its settings";
    for (const auto& [name, value] : now.items()) {
      if (!then.contains(name) || then.at(name) != value) {
        key = fmt::format("`{}`", name);
        break;
      }
    }
    throw Error(ErrorKind::usage,
                fmt::format("cannot resume `{}`: it belongs to another experiment ({} differ)", path, key),
                "give the same target, grid and steps, or start a new run");
  }
  require_same_data(path, config.data, before.data);
  std::string text = os::read_text(path + "/results.csv");
  // A crash may have cut the last row short.
  if (const std::size_t end = text.rfind('\n'); end + 1 != text.size()) {
    text.resize(end == std::string::npos ? 0 : end + 1);
    os::write_file(path + "/results.csv", text.empty() ? results_header(folder.knobs_) : text);
  }
  folder.rows_ = read_results(text, path + "/results.csv").rows;
  const std::string header = results_header(folder.knobs_);
  if (!text.starts_with(header)) {  // of a version with other columns
    std::string again = header;
    for (const Row& row : folder.rows_) again += results_line(row, folder.knobs_);
    os::write_file(path + "/results.csv", again);
  }
  folder.csv_ = os::AppendFile(path + "/results.csv");
  // What a tuner that was killed could not end.
  for (const auto& trial : std::filesystem::directory_iterator(path + "/trials", ignored)) {
    const std::string mark = trial.path().string() + "/process";
    if (!std::filesystem::exists(mark, ignored)) continue;
    os::end_marked(os::read_text(mark));
    std::filesystem::remove(mark, ignored);
  }
  return folder;
}

std::uint64_t RunFolder::next_trial() const noexcept {
  std::uint64_t last = 0;
  for (const Row& row : rows_) last = std::max(last, row.trial);
  return last + 1;
}

std::string RunFolder::trial_folder(std::uint64_t trial, const Point& knobs) {
  const std::string path = fmt::format("{}/trials/{:04d}", path_, trial);
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);  // of a trial that did not come to a row
  os::make_folders(path);
  Json config = Json::object();
  for (const auto& [knob, value] : knobs) config[knob] = value;
  os::write_file(path + "/config.json", config.dump(2) + "\n");
  return path;
}

void RunFolder::add(const Row& row) {
  csv_.append(results_line(row, knobs_));  // one write: a crash leaves whole rows, or one that is seen to be cut
  csv_.sync();
  rows_.push_back(row);
}

void RunFolder::note_settings(const Json& settings) {
  if (has_settings_ || !settings.is_object() || settings.empty()) return;
  has_settings_ = true;
  const std::string file = path_ + "/config.json";
  Json config = Json::parse_or_null(os::read_text(file));
  if (!config.is_object()) return;
  Json used = Json::object();
  for (const auto& [name, value] : settings.items()) {
    if (std::find(knobs_.begin(), knobs_.end(), name) == knobs_.end()) used[name] = value;
  }
  for (const char* const name : {"img_size", "window"}) {
    if (used.contains(name)) config[name] = used[name];
  }
  config["used"] = used;
  os::write_file(file, config.dump(2) + "\n");
}

void RunFolder::write_results(const Choice& choice, const Json& more) const {
  Json json = more;
  json.update(to_json(choice, rows_));
  os::write_file(path_ + "/results.json", json.dump(2) + "\n");
}

Json to_json(const Row& row) {
  Json json = {{"trial", row.trial}, {"status", name(row.status)}};
  Json knobs = Json::object();
  for (const auto& [knob, value] : row.knobs) knobs[knob] = value;
  json["knobs"] = knobs;
  json["images_per_s"] = or_null(row.images_per_s);
  json["ci_low"] = or_null(row.ci_low);
  json["ci_high"] = or_null(row.ci_high);
  json["steps"] = or_null(row.steps);
  json["warmup_steps"] = or_null(row.warmup_steps);
  json["step_ms"] = or_null(row.step_ms);
  json["data_ms"] = or_null(row.data_ms);
  json["h2d_ms"] = or_null(row.h2d_ms);
  json["compute_ms"] = or_null(row.compute_ms);
  json["bound"] = row.bound.empty() ? Json(nullptr) : Json(row.bound);
  json["verdict"] = row.verdict.empty() ? Json(nullptr) : Json(row.verdict);
  json["queue_depth"] = or_null(row.queue_depth);
  json["host_peak_bytes"] = or_null(row.host_peak_bytes);
  json["device_allocated_bytes"] = or_null(row.device_allocated_bytes);
  json["device_reserved_bytes"] = or_null(row.device_reserved_bytes);
  json["cpu_seconds"] = or_null(row.cpu_seconds);
  json["error"] = row.error.empty() ? Json(nullptr) : Json(row.error);
  json["trial_seconds"] = or_null(row.trial_seconds);
  return json;
}

Json to_json(const Choice& choice, const std::vector<Row>& rows) {
  Json json = {{"points", choice.points}, {"ok", choice.ok}};
  json["knee"] = or_null(choice.knee);
  json["best"] = choice.best ? to_json(rows[*choice.best]) : Json(nullptr);
  json["chosen"] = choice.chosen ? to_json(rows[*choice.chosen]) : Json(nullptr);
  json["reason"] = choice.reason;
  Json failures = Json::object();
  for (const auto& [status, count] : choice.failures) failures[std::string(name(status))] = count;
  json["failures"] = failures;
  Json list = Json::array();
  for (const Row& row : rows) list.push_back(to_json(row));
  json["rows"] = list;
  return json;
}

}  // namespace stoker::tune
