#include "stoker/tune/run_data.h"

#include <algorithm>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/os/read_file.h"

namespace stoker::tune {
namespace {

// The samples that the config chooses; null: all are used, or only the job knows.
dataset::DatasetPtr open_subset(const RunConfig& config, const OpenData& open, std::vector<Text>& notes) {
  const Target& target = config.target;
  if (config.narrowing.to_json().empty()) return nullptr;
  if (target.address.empty()) {
    notes.emplace_back("no subset.json: only the function knows its data; give its address behind it");
    return nullptr;
  }
  dataset::OpenOptions options;
  config.narrowing.put_into(options);
  const auto label = std::find(target.passed.begin(), target.passed.end(), "--label");
  if (label != target.passed.end() && label + 1 != target.passed.end()) options.label = *(label + 1);
  try {
    return open(target.address, options);
  } catch (const Error& error) {
    if (target.is_ours()) throw;
    notes.push_back(format_text("no subset.json: {}", error.text()));
    return nullptr;
  }
}

}  // namespace

RunData open_run_data(const RunConfig& config, const OpenData& open) {
  RunData found;
  found.subset = open_subset(config, open, found.notes);
  found.data = found.subset;
  if (found.data || config.target.address.empty()) return found;
  try {
    found.data = open(config.target.address, {});
  } catch (const Error&) {
    if (config.target.is_ours()) throw;
  }
  return found;
}

std::optional<DataFacts> facts_of(const dataset::DatasetPtr& data) {
  if (!data) return std::nullopt;
  return DataFacts{.samples = data->size(), .fingerprint = fmt::format("{:016x}", data->facts().fingerprint)};
}

void check_batches(const RunConfig& config, const RunData& data) {
  if (!config.target.is_ours()) return;
  double largest = 0;
  for (const Point& point : config.grid().points())
    largest = std::max(largest, number_of(point, "batch_size").value_or(0));
  const double samples =
      static_cast<double>(data.data->size()) * static_cast<double>(config.inflation_factor.value_or(1));
  if (largest <= samples) return;
  const bool is_subset = data.subset != nullptr;
  throw Error(ErrorKind::usage,
              fmt::format("batch_size={:g} is more than the {:g} samples of {}", largest, samples,
                          is_subset ? "the subset" : fmt::format("`{}`", config.target.address)),
              is_subset
                  ? format_text("use a larger {}, or repeat it with {}", option("subset"), option("inflate", "1000"))
                  : format_text("repeat them with {}", option("inflate", "1000")));
}

void write_subset(const RunConfig& config, const RunData& data, const std::string& folder) {
  const std::string file = folder + "/subset.json";
  if (!data.subset || os::exists(file)) return;
  const dataset::Narrowing& narrowing = config.narrowing;
  dataset::write_subset_json(*data.subset, narrowing.subset != 0 ? narrowing.subset_seed : narrowing.class_subset_seed,
                             file);
}

}  // namespace stoker::tune
