#include "stoker/tune/recorded_run.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/os/read_file.h"
#include "stoker/tune/config_json.h"

namespace stoker::tune {

std::vector<Block> parse_blocks(std::string_view text) {
  std::vector<Block> blocks;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const Json json = Json::parse_or_null(text.substr(at, end - at));
    at = end + 1;
    if (const std::optional<Block> block = block_of(json); block && !block->is_warmup) blocks.push_back(*block);
  }
  return blocks;
}

RecordedRun read_rows(const std::string& place, const ColumnMap& columns) {
  std::error_code ignored;
  RecordedRun run{.place = place, .is_folder = std::filesystem::is_directory(place, ignored)};
  const std::string file = run.rows_file();
  Results results = read_results(os::read_text(file), file, columns);
  run.knobs = std::move(results.knobs);
  run.rows = std::move(results.rows);
  run.notes = std::move(results.notes);
  return run;
}

void read_settings(RecordedRun& run) {
  const auto read = [&](std::string_view name) -> std::optional<Json> {
    const std::string file = fmt::format("{}/{}", run.place, name);
    if (!run.is_folder || !os::exists(file)) return std::nullopt;
    Json json = Json::parse(os::read_text(file), file);
    if (!json.is_object()) throw Error(ErrorKind::corrupt, fmt::format("`{}` is no JSON object", file));
    return json;
  };
  if (const std::optional<Json> json = read("config.json")) {
    run.config = parse_config(*json);
    run.unfinished = unfinished_of(*run.config, run.choice.points);
  }
  if (const std::optional<Json> json = read("subset.json")) {
    run.subset =
        RecordedSubset{.count = (*json)["count"].as<std::uint64_t>(), .seed = (*json)["seed"].as<std::uint64_t>()};
  }
}

std::vector<std::string> files_of(const std::string& folder, const std::vector<std::string>& names) {
  std::vector<std::string> files;
  for (const std::string& name : names) {
    if (os::exists(folder + "/" + name)) files.push_back(name);
  }
  return files;
}

std::size_t count_trials(const RecordedRun& run) {
  std::error_code ignored;
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(run.place + "/trials", ignored))
    count += entry.is_directory(ignored);
  return count;
}

std::vector<Block> read_blocks(const RecordedRun& run, std::uint64_t trial) {
  const std::string file = fmt::format("{}/trials/{:04d}/steps.jsonl", run.place, trial);
  return run.is_folder && os::exists(file) ? parse_blocks(os::read_text(file)) : std::vector<Block>();
}

}  // namespace stoker::tune
