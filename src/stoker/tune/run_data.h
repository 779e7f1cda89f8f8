// The data of a search: opened as every trial will open it, so that config.json can tell a run that is resumed whether
// its data is still the same. One thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stoker/base/text.h"
#include "stoker/dataset/dataset.h"
#include "stoker/tune/run_config.h"

namespace stoker::tune {

// Opens a data set; a face shows its progress. Throws Error.
using OpenData = std::function<dataset::DatasetPtr(const std::string& address, const dataset::OpenOptions& options)>;

struct RunData {
  dataset::DatasetPtr data = {};    // of all trials; null: only the job knows it
  dataset::DatasetPtr subset = {};  // the same, where the config narrows it; else null
  std::vector<Text> notes = {};     // why there is no subset
};

// Throws Error where our own loader could not open it.
RunData open_run_data(const RunConfig& config, const OpenData& open);

std::optional<DataFacts> facts_of(const dataset::DatasetPtr& data);
// A batch that the data cannot fill would be measured, and would mean nothing: refused for our own loader. Throws
// Error(usage).
void check_batches(const RunConfig& config, const RunData& data);
// subset.json of the run's folder, unless it is there, or nothing narrows the data.
void write_subset(const RunConfig& config, const RunData& data, const std::string& folder);

}  // namespace stoker::tune
