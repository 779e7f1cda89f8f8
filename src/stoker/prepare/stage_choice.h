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
