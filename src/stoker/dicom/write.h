// Writes series: the slices of several at once, by worker processes, each into a folder aside that gets its name when
// everything in it is on the disk. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "stoker/dicom/manifest.h"
#include "stoker/dicom/pool.h"
#include "stoker/dicom/prepare.h"

namespace stoker::dicom {

// A series to be written.
struct SeriesJob {
  const Series* series = nullptr;
  Manifest manifest;                 // plan and inputs; the rest is filled in
  std::vector<std::string> sources;  // of each slice, as the index names it
  // The line of the index for a slice that is row `row` of what is written, and comes from `source`.
  std::function<std::string(std::size_t slice, std::size_t row, std::size_t source)> line;
};

class SeriesWriter {
 public:
  // `sources` and `options` are borrowed. Series are made in `aside`, a folder that is there and empty.
  SeriesWriter(const PrepareOptions& options, const std::vector<Source>& sources, std::string aside);

  // Returns when all are written. Bad slices are added to `report.left_out`. Throws Error; series that were finished
  // stay.
  void write(std::vector<SeriesJob>& jobs, PrepareReport& report);

 private:
  struct Open {  // a series in the making
    SeriesJob* job = nullptr;
    std::string folder;
    std::size_t unanswered = 0;                   // requests
    std::vector<std::uint64_t> bytes;             // of each slice; 0: not written
    std::vector<std::string> errors;              // of each slice; empty: it was written
    std::vector<std::size_t> sources;             // of each slice: where it comes from, which may be a copy
    std::map<std::size_t, std::string> replaced;  // slices whose first source failed and a copy did not: the error
    bool is_syncing = false;
  };
  struct Asked {
    std::size_t open = 0;             // in open_
    std::vector<std::size_t> slices;  // of its series; none: a sync
    std::size_t source = 0;
  };

  void start(SeriesJob& job);
  void ask(std::size_t open, std::size_t source, std::vector<std::size_t> slices);
  bool ask_copy(std::size_t open, std::size_t source, const std::vector<std::size_t>& slices);
  void take(const Answer& answer);
  void finish_slices(std::size_t open);
  void close_array(Open& open, std::size_t written);
  void publish(Open& open);
  std::uint64_t memory_of(const Header& header) const noexcept;
  bool is_array() const noexcept { return options_.format == Format::npy; }

  const PrepareOptions& options_;
  const std::vector<Source>& sources_;
  std::string aside_;
  WorkerPool pool_;
  std::size_t workers_;
  std::vector<Open> open_;
  std::vector<Asked> asked_;  // by the id of the request
  PrepareReport* report_ = nullptr;
  std::uint64_t done_ = 0;  // slices
};

}  // namespace stoker::dicom
