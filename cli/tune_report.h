// What `stoker tune` found out, as text for people and as report.md. Pure.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

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
  std::string unfinished;  // why not everything was tried; empty: it was
  std::vector<std::string> notes;
};

std::string one_line(const tune::Ask& ask, const tune::Row& row);  // of a trial, as it ends
std::string to_text(const TuneReport& report, const Terminal& terminal);
std::string to_markdown(const TuneReport& report);
nlohmann::ordered_json to_json(const TuneReport& report);
// The chosen knobs as "json", "yaml" or "python" keyword arguments.
std::string as_settings(const tune::Point& point, std::string_view format);

}  // namespace stoker::cli
