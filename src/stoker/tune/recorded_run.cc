#include "stoker/tune/recorded_run.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/json.h"
#include "stoker/codec/media.h"
#include "stoker/dataset/dataset.h"
#include "stoker/dataset/pack_format.h"
#include "stoker/os/read_file.h"
#include "stoker/tune/config_json.h"

namespace stoker::tune {
namespace {

RecordedData look_at_data(const std::string& address, std::vector<Text>& notes) {
  RecordedData found{.is_file_per_sample = !address.ends_with(".tar")};
  if (!os::exists(address)) return found;
  try {
    const dataset::DatasetPtr data = dataset::open(address);
    if (address.ends_with(".npy") || os::exists(address + "/" + std::string(dataset::kPackJson)))
      found.is_file_per_sample = false;
    found.decodes = !data->facts().array.has_value();
    if (data->size() == 0) return found;
    found.decodes_jpeg = codec::is_scaled(data->media(0));
    found.sample_bytes =
        static_cast<double>(data->facts().total_bytes) / std::max(1.0, static_cast<double>(data->stored_count()));
  } catch (const Error& error) {
    notes.push_back(format_text("the data of the run has changed since: {}", error.text()));
  }
  return found;
}

}  // namespace

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

RecordedRun read_all(const std::string& place, const ColumnMap& columns) {
  std::error_code ignored;
  if (!os::exists(place))
    throw Error(ErrorKind::not_found, fmt::format("cannot open `{}`: No such file or directory", place));
  if (std::filesystem::is_directory(place, ignored) && !os::exists(place + "/results.csv")) {
    throw Error(ErrorKind::not_found, fmt::format("cannot read the run `{}`: it has no results.csv", place),
                "give the folder that `stoker tune` named, or a results.csv");
  }
  RecordedRun run = read_rows(place, columns);
  read_settings(run);
  for (const Row& row : run.rows) {
    if (!row.ok()) continue;
    if (auto blocks = read_blocks(run, row.trial); !blocks.empty()) run.blocks[row.trial] = std::move(blocks);
  }
  if (run.config && run.config->target.function.empty() && !run.config->target.address.empty())
    run.data = look_at_data(run.config->target.address, run.notes);
  return run;
}

}  // namespace stoker::tune
