// The labels of an index.csv: one or several columns of integers, reals or names of classes.
// Built by one thread; then only read, by any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stoker/dataset/csv_table.h"
#include "stoker/dataset/dataset.h"

namespace stoker::dataset {

class CsvLabels {
 public:
  // Sets label_kind and classes of `facts`. Throws Error for a row that has no label where others have one.
  void read(const CsvTable& table, Facts& facts);

  // Of the label column `column`; -1 where there is none.
  Label at(std::uint64_t row, std::size_t column) const noexcept;
  std::uint64_t memory_bytes() const noexcept;

 private:
  void read_one_column(const CsvTable& table, Facts& facts);
  void read_columns(const CsvTable& table, Facts& facts);
  void number_classes(const CsvTable& table, Facts& facts);

  std::size_t columns_ = 0;
  // One value per row and column in one of them.
  std::vector<std::int64_t> integers_;
  std::vector<float> reals_;
  std::vector<std::uint32_t> classes_;
};

}  // namespace stoker::dataset
