// Which samples a copy holds: the source opened, narrowed and split. One thread.
#pragma once

#include <string>
#include <vector>

#include "stoker/dataset/dataset.h"
#include "stoker/prepare/stage.h"

namespace stoker::prepare {

struct StagePart {
  std::string folder;  // below the destination, without a slash; empty: the destination itself
  dataset::DatasetPtr data;
  std::vector<std::string> classes = {};  // that its labels count from 0; the copy has a folder for each

  std::string path(std::uint64_t index) const;  // of a sample, below the destination
  bool is_index() const;                        // its source is an index.csv: the copy has one too,
  std::string index_path() const;               // with this path below the destination
  // Below the destination. None where labels come from an index.csv.
  std::vector<std::string> class_folders() const;

 private:
  std::string below(const std::string& name) const;
};

struct StageChoice {
  std::vector<StagePart> parts;
  std::uint64_t classes_of_source = 0;
  std::vector<std::string> notes;
};

// Throws Error. `progress` as in dataset::OpenOptions.
StageChoice choose_samples(const StageOptions& options, const dataset::Progress& progress);

// What decides the choice, for the manifest.
Json settings_of(const StageOptions& options);

}  // namespace stoker::prepare
