// The text of an index.csv: the names of its columns, which of them hold paths and labels, and where each row begins.
//
// The text is copied when it is small, and mapped when it is large. Built by one thread; then only read, by any.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/csv_text.h"
#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/dataset/dataset.h"
#include "stoker/os/mapping.h"

namespace stoker::dataset {

// A folder of this name holds the csv of the files beside it.
inline constexpr std::string_view kIndexFolder = "_index";

// The number that a field holds, whole: blanks around it and a plus sign before it are left out.
template <typename Number>
bool parse_field(std::string_view text, Number& value) {
  text = without_blanks(text);
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

class CsvTable {
 public:
  using IsFile = std::function<bool(const CsvField&)>;  // whether a field is the path of a file that is there

  // Reads the text of a file or an object. Throws Error.
  explicit CsvTable(const std::string& address);

  // Chooses the columns, and names them in `facts`. Throws Error where that is not possible.
  void read_header(const OpenOptions& options, const IsFile& is_file, Facts& facts);
  // Finds the rows, and refuses those that the header does not fit. `progress` gets their number now and then; false
  // ends it with Error(unavailable).
  void read_rows(const Progress& progress);

  const std::string& file_name() const noexcept { return file_name_; }
  const std::vector<std::string>& header() const noexcept { return header_; }
  std::uint64_t size() const noexcept { return rows_.size(); }  // rows
  const std::vector<std::size_t>& label_columns() const noexcept { return label_columns_; }
  const std::vector<std::size_t>& further_columns() const noexcept { return further_; }  // Facts::columns

  std::optional<CsvField> field(std::uint64_t row, std::size_t column) const noexcept {
    return field_of_row(text_, rows_[row], column);
  }
  std::optional<CsvField> path(std::uint64_t row) const noexcept { return field(row, path_column_); }
  // A field of one of label_columns().
  CsvField label(std::uint64_t row, std::size_t column) const {
    return field(row, label_columns_[column]).value_or(CsvField{});
  }

  // "index.csv line 7: cause".
  Error error_at_row(ErrorKind kind, std::uint64_t row, std::string_view cause, const Text& hint = {}) const {
    return error_at(kind, rows_[row], cause, hint);
  }
  std::uint64_t memory_bytes() const noexcept;

 private:
  Error error_at(ErrorKind kind, std::size_t offset, std::string_view cause, const Text& hint = {}) const;
  void check(const CsvRow& row) const;
  void refuse_missing_header(const std::vector<CsvField>& first, const IsFile& is_file) const;
  void refuse_volumes() const;
  void choose_path_column(const IsFile& is_file, Facts& facts);
  void choose_label_columns(const OpenOptions& options, Facts& facts);
  std::optional<std::size_t> find_label_column(const std::string& wanted) const;
  template <typename Seen>
  std::optional<std::size_t> find_column(const std::string& wanted, Seen seen) const;
  template <typename Seen>
  void refuse_twins(std::size_t column, Seen seen) const;

  std::string address_, file_name_;
  std::vector<std::byte> copy_;
  os::Mapping mapping_;
  std::string_view text_;  // of one of both
  std::vector<std::string> header_;
  std::size_t first_row_ = 0;
  std::size_t path_column_ = 0;
  std::vector<std::size_t> label_columns_, further_;
  std::vector<std::uint64_t> rows_;  // offsets
};

}  // namespace stoker::dataset
