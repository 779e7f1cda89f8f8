// results.csv: one row per trial, in the columns of the design; ours, and what others wrote. Pure text; from any
// thread.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/text.h"
#include "stoker/tune/row.h"

namespace stoker::tune {

// With its line break. `knobs` are the columns between status and images_per_s, in this order.
std::string results_header(std::span<const std::string> knobs);
std::string results_line(const Row& row, std::span<const std::string> knobs);

// Our word -> the column of the file that holds it: images_per_s -> throughput.
using ColumnMap = std::map<std::string, std::string, std::less<>>;

// "images_per_s=throughput" into `columns`. Throws Error(usage).
void add_column(ColumnMap& columns, std::string_view text);

struct Results {
  std::vector<std::string> knobs = {};  // in the order of the file
  std::vector<Row> rows = {};
  std::vector<Text> notes = {};  // what was not read, or not as it stands there: "column `note` is not used"
};

// Any order of columns; a column that we do not know is a knob if it lies between status and images_per_s, or has the
// name of a knob that loaders have. Statuses of others: what means success is ok, `error` and its like are classified
// from the error column; what was made of each is in the notes. Lines that begin with # are comments. `file` is for
// messages. Throws Error(corrupt) that names the line, Error(usage) for a map that does not fit.
Results read_results(std::string_view text, std::string_view file, const ColumnMap& columns = {});

}  // namespace stoker::tune
