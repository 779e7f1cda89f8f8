// The report of a tuning run, from its rows: ours, or what others measured. Pure; from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/report/report.h"
#include "stoker/tune/blocks.h"
#include "stoker/tune/choose.h"
#include "stoker/tune/row.h"

namespace stoker::report {

struct TuneRun {
  std::string place;                    // the folder or file, as commands name it
  bool is_folder = false;               // with config.json and trials/; else one file of rows
  std::vector<std::string> knobs = {};  // in the order of the columns
  std::vector<tune::Row> rows = {};
  tune::Choice choice = {};                                       // of these rows
  Json config = nullptr;                                          // null: there is none
  Json subset = nullptr;                                          // the same
  std::string unfinished = {};                                    // why not everything was tried
  std::vector<std::string> notes = {};                            // to be said as they are
  std::vector<std::string> files = {};                            // that the folder holds, to be linked
  std::map<std::uint64_t, std::vector<tune::Block>> blocks = {};  // of trials, without the warm-up
};

Report from_run(const TuneRun& run);

// Trials whose steps the report shows: along the chosen curve. At most 8.
std::vector<std::uint64_t> trials_to_show(const TuneRun& run);

}  // namespace stoker::report
