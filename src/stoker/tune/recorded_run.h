// A run that was measured before: a folder of `stoker tune`, or a table of rows, ours or others'. Plain values; the
// functions that read files say so. From any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/tune/blocks.h"
#include "stoker/tune/choose.h"
#include "stoker/tune/results_csv.h"
#include "stoker/tune/row.h"

namespace stoker::tune {

struct RecordedRun {
  std::string place;                    // the folder or file, as commands name it
  bool is_folder = false;               // with config.json and trials/; else one file of rows
  std::vector<std::string> knobs = {};  // in the order of the columns
  std::vector<Row> rows = {};
  Choice choice = {};                                       // of these rows
  Json config = nullptr;                                    // null: there is none
  Json subset = nullptr;                                    // the same
  std::string unfinished = {};                              // why not everything was tried
  std::vector<std::string> notes = {};                      // to be said as they are
  std::vector<std::string> files = {};                      // that the folder holds, to be linked
  std::map<std::uint64_t, std::vector<Block>> blocks = {};  // of trials, without the warm-up

  std::string rows_file() const { return is_folder ? place + "/results.csv" : place; }
};

// Blocks in the text of a trial's steps.jsonl, without the warm-up. A line that is no report counts for nothing.
std::vector<Block> parse_blocks(std::string_view text);

// A search over the whole grid that stopped early, as its config.json and rows tell: "3 of 12 points have a row".
// Empty: nothing is missing, or nobody knows.
std::string unfinished_of(const RecordedRun& run);

// These read files, and throw Error that names the file.
// The rows and what is said of them; nothing else of the folder.
RecordedRun read_rows(const std::string& place, const ColumnMap& columns = {});
// The file of the run's folder as JSON; null where there is none.
Json read_json_of(const RecordedRun& run, std::string_view name);
// Of the names, those that the run's folder holds.
std::vector<std::string> files_of(const std::string& folder, const std::vector<std::string>& names);
std::size_t count_trials(const RecordedRun& run);                             // folders below trials/
std::vector<Block> read_blocks(const RecordedRun& run, std::uint64_t trial);  // none where there is no such file

}  // namespace stoker::tune
