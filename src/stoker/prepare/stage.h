// Copying the samples of a data set, or some of its classes, to a local folder or pack: from an object store, or from
// any data set whose samples are files of their own. A second run fetches only what is new or changed; a run that was
// interrupted or killed goes on where it stopped. Blocks until the copy is there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/text.h"
#include "stoker/dataset/narrowing.h"
#include "stoker/loader/options.h"
#include "stoker/prepare/part_name.h"

namespace stoker::prepare {

struct StageSplit {
  std::string name;         // a folder of the source, and of the copy
  std::uint64_t count = 0;  // samples of it, drawn by Narrowing::subset_seed; 0: all
};
// "train=50000,val=1000"; a name alone means all. Throws Error(usage).
std::vector<StageSplit> parse_splits(std::string_view text);

struct StageProgress {
  std::string_view phase;                 // "scanning", "comparing", "copying"
  std::uint64_t files = 0, of_files = 0;  // of_files 0: not known
  std::uint64_t bytes = 0, of_bytes = 0;
};

struct StageOptions {
  std::string source, destination;  // a destination that ends in .pack is a pack, any other a folder
  std::string label;                // index.csv: the label column
  dataset::Narrowing narrowing;
  // If the source has folders of these names: samples of each, of the classes that are chosen in the first. Otherwise
  // samples of the whole, none of them in two splits. Empty: no splits.
  std::vector<StageSplit> splits;
  std::uint64_t max_rate = 0;                             // bytes per second; 0: no limit
  std::uint64_t memory_limit = std::uint64_t{256} << 20;  // of bytes on their way
  loader::OnError on_error = loader::OnError::raise;      // or skip: leave bad objects out, and name them
  bool prune = false;                                     // remove files of earlier runs that are not chosen any more
  bool force = false;                                     // replace files that no run wrote, or that changed since
  // Several machines may make one copy on a disk that they share: each fetches parts into folders beside the
  // destination, then one of them joins these. A part owns neighbours of the listing. Folders only.
  std::optional<PartName> part;
  bool join = false;
  bool dry_run = false;   // say what would be copied and how long that would take; write nothing
  std::string cache_dir;  // as in dataset::OpenOptions
  // Called several times a second, on the calling thread. False ends the copy with Error(unavailable, "interrupted").
  std::function<bool(const StageProgress&)> progress;
};

struct StageReport {
  std::string source, source_kind, destination;
  bool to_pack = false, dry_run = false, idle = false;  // idle: everything was there
  std::uint64_t files = 0, bytes = 0;                   // that the copy holds, or would hold
  std::uint64_t fetched = 0, fetched_bytes = 0;         // dry_run: to be fetched
  std::uint64_t kept = 0;                               // were there, unchanged
  std::uint64_t pruned = 0;
  std::optional<PartName> part;      // this run made one part; the figures are those of the part
  std::uint64_t requests = 0;        // for objects of a store; listings are not counted
  double seconds = 0;                // taken; dry_run: expected
  std::uint64_t measured_files = 0;  // dry_run: how many files the estimate rests on
  std::uint64_t classes_of_source = 0;
  std::vector<std::string> classes;  // that were chosen
  struct Split {
    std::string name;
    std::uint64_t files = 0, bytes = 0;
  };
  std::vector<Split> splits;
  struct Bad {
    std::string name, cause;
  };
  std::vector<Bad> bad;  // left out, by name
  std::vector<Text> notes;
};

StageReport stage(const StageOptions& options);  // throws Error

}  // namespace stoker::prepare
