// What `stoker tune` found out, as text for people and as JSON. Pure.
#pragma once

#include <string>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/tune/choose.h"
#include "stoker/tune/search.h"

#include "terminal.h"

namespace stoker::cli {

struct TuneReport {
  std::string target;  // what was tuned, in one line
  std::string folder;  // empty: a replay
  std::vector<tune::Row> rows;
  tune::Choice choice;
  std::uint64_t grid_points = 0;
  double seconds = 0;
  double tuner_cpu_seconds = 0;  // of the tuner itself, without its trials
  std::string unfinished;        // why not everything was tried; empty: it was
  // Of a DataLoader of a job: what the choice changes, the same as a diff of the source, the command that applies it.
  std::string change, diff, apply;
  std::vector<std::string> notes;
};

// Best rate of each pair of values of workers and batch size (or else of the first two knobs), with the status of those
// that failed; empty where there are no two.
std::string heat_map(const std::vector<tune::Row>& rows);
tune::Row mean_of(const std::vector<tune::Row>& rows, const tune::Row& row);  // of all runs of its point
std::string rate_text(const tune::Row& row);                                  // "502/s +-1.2 %"
std::string one_line(const tune::Ask& ask, const tune::Row& row);             // of a trial, as it ends
std::string to_text(const TuneReport& report, const Terminal& terminal);
Json to_json(const TuneReport& report);
// What results.json has beside the choice and the rows.
Json facts_of(const TuneReport& report);

}  // namespace stoker::cli
