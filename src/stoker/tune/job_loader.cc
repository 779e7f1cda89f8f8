#include "stoker/tune/job_loader.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/os/cpu.h"
#include "stoker/os/disk.h"
#include "stoker/os/memory.h"
#include "stoker/tune/config_json.h"

namespace stoker::tune {
namespace {

constexpr std::array<std::string_view, 6> kArguments = {"num_workers",        "prefetch_factor",         "pin_memory",
                                                        "persistent_workers", "multiprocessing_context", "batch_size"};
constexpr double kOfMemory = 0.8, kOfShm = 0.8;  // that workers and their batches may take
constexpr std::int64_t kMostWorkers = 64;
constexpr std::size_t kContext = 3;  // lines around a change in a diff

std::string place_text(const std::string& file, int line) {
  return fmt::format("{}:{}", std::filesystem::path(file).filename().string(), line);
}

// A value as Python writes it.
std::string in_python(const std::string& word) {
  if (word == "true") return "True";
  if (word == "false") return "False";
  if (number_of(word) || word == "None" || word == "True" || word == "False") return word;
  return fmt::format("\"{}\"", word);
}

std::string word_of(bool value) {
  return value ? "true" : "false";
}

// Whether a point gives an argument of the DataLoader another value.
bool changes(const Point& before, const std::string& knob, const std::string& word) {
  const auto old = before.find(knob);
  return old != before.end() && old->second != word;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace

bool is_loader_argument(std::string_view name) noexcept {
  return std::find(kArguments.begin(), kArguments.end(), name) != kArguments.end();
}

JobLook look_at_job(const TrialOptions& trial, const std::string& wanted, const std::function<bool()>& interrupted) {
  const TrialResult result = run_trial(trial, interrupted);
  if (result.interrupted) throw Error(ErrorKind::unavailable, "interrupted");
  std::vector<std::string> places;
  const measure::LoaderAnswer* found = nullptr;
  for (const measure::LoaderAnswer& loader : result.loaders) {
    if (loader.facts.kind != measure::LoaderKind::torch || loader.facts.file.empty()) continue;
    const std::string place = place_text(loader.facts.file, loader.facts.line);
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
    const bool is_it =
        wanted.empty() || wanted == place || wanted == fmt::format("{}:{}", loader.facts.file, loader.facts.line);
    if (is_it && found == nullptr) found = &loader;  // training loaders come first
  }
  if (found == nullptr && !places.empty()) {
    throw Error(ErrorKind::usage, format_text("`{}` is no DataLoader of the job", option("loader", wanted)),
                fmt::format("it makes DataLoaders at {}", fmt::join(places, ", ")))
        .about("loader");
  }
  if (result.failure) {
    throw Error(ErrorKind::usage, fmt::format("cannot tune this job: {}", result.failure->cause),
                format_text("{}", result.failure->remedy));
  }
  if (found == nullptr) {
    throw Error(ErrorKind::usage, "cannot tune this job: it made no torch DataLoader whose line is known",
                format_text("name what to try, with `{{knob}}` in the command: {}", option("grid", "workers=0,4,8")));
  }
  JobLook look;
  look.loader = found->facts;
  look.epochs = static_cast<std::uint32_t>(std::max<std::size_t>(1, found->epochs.size()));
  if (found->batch) {
    look.batch_bytes = found->batch->bytes;
    look.has_device = !found->batch->device.empty();
  }
  look.images_per_s = result.row.images_per_s.value_or(0);
  look.seconds = result.seconds;
  const std::uint64_t peak = result.row.host_peak_bytes.value_or(0);
  if (look.loader.num_workers > 0) look.worker_bytes = peak / static_cast<std::uint64_t>(look.loader.num_workers + 1);
  return look;
}

TuneRoom room_of_machine() {
  return {.cores = os::effective_cores().whole(),
          .memory_bytes = os::memory_limit().bytes,
          .shm_bytes = os::free_bytes("/dev/shm").value_or(0)};
}

Grid propose_grid(const JobLook& look, const TuneRoom& room) {
  const measure::LoaderFacts& now = look.loader;
  std::set<std::int64_t> workers = {0, 1, room.cores, 2 * room.cores, now.num_workers};
  for (std::int64_t count = 2; count < 2 * room.cores; count *= 2) workers.insert(count);
  std::set<std::int64_t> prefetch = {2, 4};
  if (now.num_workers > 0 && now.prefetch_factor > 0) prefetch.insert(now.prefetch_factor);
  const auto fits = [&](std::int64_t count) {
    if (count == now.num_workers) return true;  // it ran
    const double queued = static_cast<double>(count * *prefetch.begin()) * static_cast<double>(look.batch_bytes);
    const double held = static_cast<double>(count) * static_cast<double>(look.worker_bytes) + queued;
    return count <= kMostWorkers && (room.shm_bytes == 0 || queued <= kOfShm * static_cast<double>(room.shm_bytes)) &&
           (room.memory_bytes == 0 || held <= kOfMemory * static_cast<double>(room.memory_bytes));
  };
  std::vector<std::int64_t> fitting;
  std::copy_if(workers.begin(), workers.end(), std::back_inserter(fitting), fits);
  Grid grid;
  grid.add(fmt::format("num_workers={}", fmt::join(fitting, ",")));
  if (fitting.back() > 0) grid.add(fmt::format("prefetch_factor={}", fmt::join(prefetch, ",")));
  if (look.has_device) grid.add("pin_memory=true,false");
  if (look.epochs > 1 && fitting.back() > 0) grid.add("persistent_workers=true,false");
  return grid;
}

Point present_settings(const measure::LoaderFacts& facts, const std::vector<std::string>& knobs) {
  const Point all = {{"num_workers", std::to_string(facts.num_workers)},
                     {"prefetch_factor", facts.num_workers > 0 ? std::to_string(facts.prefetch_factor) : "None"},
                     {"pin_memory", word_of(facts.pin_memory)},
                     {"persistent_workers", word_of(facts.persistent_workers)},
                     {"multiprocessing_context", facts.start_method.empty() ? "None" : facts.start_method},
                     {"batch_size", facts.batch_size < 0 ? "None" : std::to_string(facts.batch_size)}};
  Point point;
  for (const std::string& knob : knobs) {
    if (const auto found = all.find(knob); found != all.end()) point.insert(*found);
  }
  return point;
}

Json source_json(const Point& point, const std::vector<std::string>& keys) {
  Json json = Json::array();
  for (const std::string& key : keys) {
    const std::size_t colon = key.rfind(':');
    if (const auto found = point.find(key); found != point.end())
      json.push_back(
          {{"file", key.substr(0, colon)}, {"name", key.substr(colon + 1)}, {"value", value_of(found->second)}});
  }
  return json;
}

Json settings_json(const LoaderPlace& place, const Point& point, const std::vector<std::string>& knobs) {
  Json set = Json::object();
  for (const std::string& knob : knobs) {
    if (const auto found = point.find(knob); found != point.end()) set[knob] = value_of(found->second);
  }
  Json loader = {{"file", place.file}, {"line", place.line}, {"name", place.name}};
  loader["set"] = std::move(set);
  Json json = {{"schema", "stoker.settings/1"}};
  json["loaders"] = Json::array({std::move(loader)});
  return json;
}

std::string change_text(const LoaderPlace& place, const Point& before, const Point& after) {
  std::string text;
  for (const auto& [knob, word] : after) {
    if (!changes(before, knob, word)) continue;
    text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", knob, in_python(before.at(knob)), in_python(word));
  }
  return text.empty() ? "" : fmt::format("{}: {}", place_text(place.file, place.line), text);
}

std::string source_diff(const std::string& file, std::string_view source,
                        const std::map<std::string, measure::Literal>& literals, const Point& before,
                        const Point& after) {
  const std::vector<std::string_view> lines = lines_of(source);
  std::map<std::size_t, std::string> changed;  // by line, from 0
  std::vector<std::pair<std::string, measure::Literal>> edits;
  for (const auto& [knob, word] : after) {
    const auto literal = literals.find(knob);
    if (literal == literals.end() || !changes(before, knob, word)) continue;
    edits.emplace_back(in_python(word), literal->second);
  }
  // From right to left, so that columns stay true.
  std::sort(edits.begin(), edits.end(), [](const auto& a, const auto& b) { return a.second.column > b.second.column; });
  for (const auto& [word, literal] : edits) {
    const std::size_t at = static_cast<std::size_t>(literal.line) - 1;
    if (literal.line < 1 || at >= lines.size()) continue;
    std::string& line = changed.try_emplace(at, lines[at]).first->second;
    const auto column = static_cast<std::size_t>(literal.column), end = static_cast<std::size_t>(literal.end);
    if (literal.column < 0 || end < column || end > line.size()) continue;
    line.replace(column, end - column, word);
  }
  std::erase_if(changed, [&](const auto& one) { return one.second == lines[one.first]; });
  if (changed.empty()) return "";
  std::string diff = fmt::format("--- a/{0}\n+++ b/{0}\n", file);
  for (auto first = changed.begin(); first != changed.end();) {
    auto last = first;
    while (std::next(last) != changed.end() && std::next(last)->first <= last->first + 2 * kContext) ++last;
    const std::size_t from = first->first - std::min(first->first, kContext);
    const std::size_t to = std::min(last->first + kContext + 1, lines.size());
    diff += fmt::format("@@ -{0},{1} +{0},{1} @@\n", from + 1, to - from);
    for (std::size_t at = from; at < to; ++at) {
      const auto one = changed.find(at);
      if (one == changed.end()) {
        diff += fmt::format(" {}\n", lines[at]);
        continue;
      }
      // Neighbouring changes stand together: all old lines, then all new ones.
      std::size_t end = at;
      while (end < to && changed.contains(end)) diff += fmt::format("-{}\n", lines[end++]);
      for (std::size_t line = at; line < end; ++line) diff += fmt::format("+{}\n", changed.at(line));
      at = end - 1;
    }
    first = std::next(last);
  }
  return diff;
}

std::vector<std::string> missing_in_source(const std::map<std::string, measure::Literal>& literals, const Point& before,
                                           const Point& after) {
  std::vector<std::string> missing;
  for (const auto& [knob, word] : after) {
    if (changes(before, knob, word) && !literals.contains(knob))
      missing.push_back(fmt::format("{}={}", knob, in_python(word)));
  }
  return missing;
}

}  // namespace stoker::tune
