// A run that was measured before: a folder of `stoker tune`, or a table of rows, ours or others'. Plain values; the
// functions that read files say so. From any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/tune/blocks.h"
#include "stoker/tune/choose.h"
#include "stoker/tune/results_csv.h"
#include "stoker/tune/row.h"
#include "stoker/tune/run_config.h"

namespace stoker::tune {

// The samples that were chosen: subset.json.
struct RecordedSubset {
  std::optional<std::uint64_t> count = {}, seed = {};
};

// What a look at the data of our own loader tells.
struct RecordedData {
  bool is_file_per_sample = true;  // false: a pack, an array or a tar shard
  bool decodes = true;
  bool decodes_jpeg = false;  // decode=fast is for them alone
  double sample_bytes = 0;    // encoded, on average; 0: not known
};

struct RecordedRun {
  std::string place;                    // the folder or file, as commands name it
  bool is_folder = false;               // with config.json and trials/; else one file of rows
  std::vector<std::string> knobs = {};  // in the order of the columns
  std::vector<Row> rows = {};
  Choice choice = {};                    // of these rows
  std::optional<RunConfig> config = {};  // none: there is no config.json
  std::optional<RecordedSubset> subset = {};
  std::string unfinished = {};                              // why not everything was tried
  std::vector<Text> notes = {};                             // to be said as they are
  std::vector<std::string> files = {};                      // that the folder holds, to be linked
  std::map<std::uint64_t, std::vector<Block>> blocks = {};  // of trials, without the warm-up
  std::optional<RecordedData> data = {};                    // none: not inspected, or the data is not our loader's

  std::string rows_file() const { return is_folder ? place + "/results.csv" : place; }
};

// Blocks in the text of a trial's steps.jsonl, without the warm-up. A line that is no report counts for nothing.
std::vector<Block> parse_blocks(std::string_view text);

// These read files, and throw Error that names the file.
// The rows and what is said of them; nothing else of the folder.
RecordedRun read_rows(const std::string& place, const ColumnMap& columns = {});
// config.json and subset.json of the run's folder, where they are, and which points have no row yet.
void read_settings(RecordedRun& run);
// Of the names, those that the run's folder holds.
std::vector<std::string> files_of(const std::string& folder, const std::vector<std::string>& names);
std::size_t count_trials(const RecordedRun& run);                             // folders below trials/
std::vector<Block> read_blocks(const RecordedRun& run, std::uint64_t trial);  // none where there is no such file
// All that a plan is made from: rows, settings, the blocks of every trial that ran, and a look at the data of our own
// loader, where it is still there.
RecordedRun read_all(const std::string& place, const ColumnMap& columns = {});

}  // namespace stoker::tune
