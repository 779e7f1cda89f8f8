// The expression of the option `where`: which rows of an index.csv, or of a pack made from one, are wanted, by their
// columns. Such as: slice_spacing<3 and rows==512 and not modality=="MR".
//
//   comparisons   == != < <= > >= (also chained: 1 <= x < 3), of columns, numbers and texts in quotes
//   and or not, parentheses
//
// A number compares with cells that are numbers. A cell that is empty, or no number, equals no number and is neither
// above nor below one. Other comparisons are of texts. Parsing and matching are pure functions; safe from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/dataset/dataset.h"

namespace stoker::dataset {

class Where {
 public:
  // Throws Error(usage) about the option `where`, naming the place. Columns are numbered in the order of columns().
  explicit Where(std::string_view text);

  const std::vector<std::string>& columns() const noexcept { return columns_; }  // that it names, each once
  // `cell` gives the text of a column, by its number in columns().
  bool matches(const std::function<std::string(std::size_t column)>& cell) const;

 private:
  enum class Kind : std::uint8_t { all_of, any_of, not_of, compare };
  enum class Compare : std::uint8_t { equal, different, below, at_most, above, at_least };
  struct Operand {
    enum class Kind : std::uint8_t { column, number, text };
    Kind kind = Kind::column;
    std::size_t column = 0;
    double number = 0;
    std::string text;
  };
  struct Node {
    Kind kind = Kind::compare;
    Compare compare = Compare::equal;
    std::size_t left = 0, right = 0;  // nodes; of a comparison: operands
  };
  class Parser;

  bool matches(std::size_t node, const std::function<std::string(std::size_t column)>& cell) const;

  std::vector<std::string> columns_;
  std::vector<Operand> operands_;
  std::vector<Node> nodes_;
  std::size_t root_ = 0;
};

// The samples whose row matches. Throws Error: a column that is not there (the message lists those that are), or no
// sample matches.
DatasetPtr take_where(DatasetPtr dataset, const std::string& expression);

}  // namespace stoker::dataset
