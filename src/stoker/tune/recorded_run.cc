#include "stoker/tune/recorded_run.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "stoker/os/read_file.h"

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

std::string unfinished_of(const RecordedRun& run) {
  if (!run.config.is_object() || run.config.value("search", Json(nullptr)) != "grid" || !run.config.contains("grid") ||
      !run.config.at("grid").is_object())
    return "";
  std::uint64_t all = 1;
  for (const auto& [knob, values] : run.config.at("grid").items()) all *= values.is_array() ? values.size() : 1;
  return run.choice.points < all ? fmt::format("{} of {} points have a row", run.choice.points, all) : "";
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

Json read_json_of(const RecordedRun& run, std::string_view name) {
  const std::string file = fmt::format("{}/{}", run.place, name);
  return run.is_folder && os::exists(file) ? Json::parse(os::read_text(file), file) : Json(nullptr);
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
