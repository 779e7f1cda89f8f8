// From the files of a run to its report, and from the report to its files. Errors name the file and what is wrong. The
// only part of this folder that reads and writes files; from any thread.
#pragma once

#include <string>
#include <vector>

#include "stoker/report/report.h"
#include "stoker/tune/recorded_run.h"

namespace stoker::report {

// A folder of `stoker tune`, or of others with a results.csv in it, or one such file.
tune::RecordedRun read_run(const std::string& place, const tune::ColumnMap& columns = {});

// `places`: run folders, files of rows, folders of `stoker measure --out`. The first is what the report is about; with
// several, each is a side of its comparison. Throws Error.
struct ReportOptions {
  std::vector<std::string> places;
  std::string before, after;  // empty: none
  tune::ColumnMap columns;
  std::string unfinished;  // what the caller knows beyond the files
};
Report read_report(const ReportOptions& options);

// A report ends with a checksum of itself, so that one which people wrote into is not overwritten.
void write_report(const std::string& path, const std::string& text, bool force);
// Both renderings into a run's own folder, as `stoker tune` leaves them. Never throws: what is wrong becomes a note.
void write_reports(const std::string& folder, const std::string& unfinished, std::vector<std::string>& notes);

}  // namespace stoker::report
