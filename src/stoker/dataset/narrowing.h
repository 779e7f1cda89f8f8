// Which classes and samples of a data set are wanted. The verbs load, tune, pack and stage share it, so that the same
// words choose the same samples in each of them. Plain values; safe from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/dataset/dataset.h"

namespace stoker::dataset {

struct Narrowing {
  std::string where = {};                    // an expression over the columns of an index.csv; empty: all
  std::vector<std::string> class_list = {};  // classes by name; empty: all
  std::uint64_t class_subset = 0;            // then this number of classes, drawn by class_subset_seed; 0: all
  std::uint64_t class_subset_seed = 42;
  std::uint64_t subset = 0;  // then this number of samples, drawn by subset_seed; 0: all
  std::uint64_t subset_seed = 42;

  void put_into(OpenOptions& options) const;
  Json to_json() const;                          // an object; it holds only what narrows. Empty: nothing does
  static Narrowing from_json(const Json& json);  // ignores what it does not know
};

// The names in a text file, UTF-8 or with the byte order mark of UTF-16, one per line, each once, in the order of the
// file. Blank lines and lines that begin with # are comments. Throws Error; a file without names is `usage`.
std::vector<std::string> read_class_list(const std::string& path);

}  // namespace stoker::dataset
