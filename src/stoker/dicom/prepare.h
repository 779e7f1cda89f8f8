// DICOM files below a folder to slices that train: one folder per series with 16-bit PNG files or one array, and an
// index. A second run writes what is new or changed; one that was interrupted or killed goes on. Blocks until it is
// done. Decoding runs in worker processes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/dicom/series.h"
#include "stoker/prepare/part_name.h"

namespace stoker::dicom {

enum class Format : std::uint8_t {
  png,   // SERIES/00000.png ...
  npy,   // SERIES/slices.npy: uint16 [slices, rows, cols]
  pack,  // PNG files, and slices.pack of all of them
};
std::string_view name(Format format) noexcept;
Format parse_format(std::string_view text);  // throws Error(usage)

struct PrepareProgress {
  std::string_view phase;             // "finding files", "reading headers", "writing", "packing"
  std::uint64_t done = 0, total = 0;  // files or slices; total 0: not known
};

struct PrepareOptions {
  std::string source, destination;
  Format format = Format::png;
  int workers = 0;  // processes; 0: the effective cores
  // Of decoding, in all processes together. A file that needs more is left out.
  std::uint64_t memory_limit = std::uint64_t{1} << 30;
  bool keep_identifiers = false;  // ids and paths as they are in the files, in place of pseudonyms
  std::string key_file;           // of the pseudonyms; empty: default_key_path()
  bool prune = false;             // remove series whose files are gone
  bool dry_run = false;           // say what would be done; write nothing
  // Several machines may write into one folder: each one makes parts, then one of them joins these. A part owns every
  // N-th series; joining writes the index.
  std::optional<prepare::PartName> part;
  bool join = false;
  // A program that answers as worker.h says: `{"stoker", "dicom-worker"}`.
  std::vector<std::string> worker_command;
  // Called several times a second. False ends the run with Error(unavailable, "interrupted").
  std::function<bool(const PrepareProgress&)> progress;
};

struct PrepareReport {
  std::string source, destination, index;
  Format format = Format::png;
  bool dry_run = false, idle = false;              // idle: everything was there
  std::optional<prepare::PartName> part;           // this run made one part; series and slices are those of the part
  std::uint64_t files = 0;                         // that were looked at
  std::uint64_t images = 0;                        // DICOM files that slices come from
  std::uint64_t series = 0, slices = 0;            // in the index; dry_run: planned
  std::uint64_t added = 0, changed = 0, kept = 0;  // series
  std::uint64_t slices_written = 0, bytes_written = 0;
  std::uint64_t refused_series = 0;  // series without a single slice that could be written
  std::vector<std::string> removed;  // series in the destination whose files are gone, by name
  bool pruned = false;               // and they were removed from the destination too
  std::vector<LeftOut> left_out;     // by path
  struct SeriesNote {
    std::string series, text;
  };
  std::vector<SeriesNote> series_notes;
  std::vector<std::string> notes;
  double seconds = 0;

  std::uint64_t refused() const noexcept;  // files and slices that were left out though they are images
};

// Throws Error.
PrepareReport prepare(const PrepareOptions& options);

}  // namespace stoker::dicom
