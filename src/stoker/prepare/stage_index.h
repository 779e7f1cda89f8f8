// The index.csv of a copy whose source is one: the rows that were chosen, with labels and columns as they were written.
// Pure; from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_set>

#include "stoker/prepare/stage_choice.h"

namespace stoker::prepare {

struct StageIndex {
  std::string text;
  // Classes without a row, if one of them comes before a class with rows; else 0. Labels are then written as numbers:
  // from names a reader would number the remaining classes from 0 again.
  std::size_t empty_classes = 0;
};

// `left_out`: paths, as StagePart::path gives them, of samples that are not in the copy.
StageIndex make_index(const StagePart& part, const std::unordered_set<std::string>& left_out);

}  // namespace stoker::prepare
