#include "stoker/plan/read_run.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/codec/media.h"
#include "stoker/dataset/dataset.h"
#include "stoker/dataset/pack_format.h"
#include "stoker/os/read_file.h"

namespace stoker::plan {
namespace {

// What the data is, where that is known at a glance.
void look_at_data(PlanRun& run) {
  const bool is_pack = os::exists(run.address + "/" + std::string(dataset::kPackJson));
  const bool is_array = run.address.ends_with(".npy");
  if (run.address.ends_with(".tar")) run.setting.is_file_per_sample = false;
  if (!os::exists(run.address)) return;
  try {
    const dataset::DatasetPtr data = dataset::open(run.address);
    if (is_pack || is_array) run.setting.is_file_per_sample = false;
    run.setting.decodes = !data->facts().array.has_value();
    if (data->size() == 0) return;
    run.setting.decodes_jpeg = codec::is_scaled(data->media(0));
    const double samples = static_cast<double>(data->stored_count());
    if (run.setting.sample_bytes <= 0) {
      run.setting.sample_bytes = static_cast<double>(data->facts().total_bytes) / std::max(1.0, samples);
    }
  } catch (const Error& error) {
    run.notes.push_back(fmt::format("the data of the run has changed since: {}", error.message()));
  }
}

}  // namespace

PlanRun read_run(const std::string& path, const tune::ColumnMap& columns) {
  std::error_code ignored;
  if (!os::exists(path))
    throw Error(ErrorKind::not_found, fmt::format("cannot open `{}`: No such file or directory", path));
  if (std::filesystem::is_directory(path, ignored) && !os::exists(path + "/results.csv")) {
    throw Error(ErrorKind::not_found, fmt::format("cannot plan from `{}`: it has no results.csv", path),
                "give the folder that `stoker tune` named, or a results.csv");
  }
  tune::RecordedRun recorded = tune::read_rows(path, columns);
  tune::read_settings(recorded);
  for (const tune::Row& row : recorded.rows) {
    if (!row.ok()) continue;
    if (auto blocks = tune::read_blocks(recorded, row.trial); !blocks.empty())
      recorded.blocks[row.trial] = std::move(blocks);
  }
  PlanRun run = run_of(std::move(recorded));
  if (!run.address.empty()) look_at_data(run);
  return run;
}

}  // namespace stoker::plan
