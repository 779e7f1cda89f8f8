#include "stoker/dataset/csv_labels.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/dataset/files.h"

namespace stoker::dataset {
namespace {

// An integer of any size.
bool is_whole_number(std::string_view text) {
  text = without_blanks(text);
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

const std::string& label_name(const CsvTable& table, std::size_t column) {
  return table.header()[table.label_columns()[column]];
}

// float32 would take its place for every row, and round the labels of the others.
Error too_large_label(const CsvTable& table, std::uint64_t row, std::size_t column) {
  return table.error_at_row(ErrorKind::unsupported, row,
                            fmt::format("the label (`{}`) {} is beyond the integers that fit 64 bits",
                                        label_name(table, column), without_blanks(table.label(row, column).raw)),
                            "whole numbers from -2^63 to 2^63-1 are labels; with a decimal point they are float32");
}

}  // namespace

void CsvLabels::read(const CsvTable& table, Facts& facts) {
  columns_ = table.label_columns().size();
  if (columns_ == 1) read_one_column(table, facts);
  if (columns_ > 1) read_columns(table, facts);
}

Label CsvLabels::at(std::uint64_t row, std::size_t column) const noexcept {
  const std::uint64_t at = row * columns_ + column;
  if (!classes_.empty()) return {static_cast<std::int64_t>(classes_[at]), 0};
  if (!integers_.empty()) return {integers_[at], 0};
  if (!reals_.empty()) return {-1, reals_[at]};
  return {};
}

std::uint64_t CsvLabels::memory_bytes() const noexcept {
  return held_bytes(integers_) + held_bytes(reals_) + held_bytes(classes_);
}

void CsvLabels::read_one_column(const CsvTable& table, Facts& facts) {
  const std::string& column = label_name(table, 0);
  bool all_integers = true, all_reals = true, all_whole = true;
  std::uint64_t empty = 0, first_too_large = 0;
  std::uint64_t first_empty = 0;
  for (std::uint64_t i = 0; i < table.size(); ++i) {
    const std::string_view text = table.label(i, 0).raw;
    if (without_blanks(text).empty()) {
      if (empty++ == 0) first_empty = i;
      continue;
    }
    std::int64_t integer;
    float real;
    const bool had_only_integers = all_integers;
    all_integers = all_integers && parse_field(text, integer);
    if (had_only_integers && !all_integers) first_too_large = i;  // if it is one at all
    all_whole = all_whole && (all_integers || is_whole_number(text));
    all_reals = all_reals && (all_integers || parse_field(text, real));
    if (!all_reals && empty > 0) break;
  }
  if (empty == table.size()) {
    facts.notes.push_back(fmt::format("column `{}` is empty: the samples have no labels", column));
    return;
  }
  if (empty > 0) {
    throw table.error_at_row(ErrorKind::corrupt, first_empty, fmt::format("the label (`{}`) is empty", column),
                             format_text("every row needs a label, or none; {} names another column", option("label")));
  }
  if (all_whole && !all_integers) throw too_large_label(table, first_too_large, 0);
  facts.label_kind = all_integers || !all_reals ? LabelKind::integer : LabelKind::real;
  if (all_integers) {
    integers_.resize(table.size());
    for (std::uint64_t i = 0; i < table.size(); ++i) parse_field(table.label(i, 0).raw, integers_[i]);
  } else if (all_reals) {
    reals_.resize(table.size());
    for (std::uint64_t i = 0; i < table.size(); ++i) parse_field(table.label(i, 0).raw, reals_[i]);
  } else {
    number_classes(table, facts);
  }
}

// Several labels per sample are one row of numbers: integers if all are, else reals.
void CsvLabels::read_columns(const CsvTable& table, Facts& facts) {
  bool all_integers = true, all_whole = true;
  std::optional<std::pair<std::uint64_t, std::size_t>> too_large;  // row and column
  for (std::uint64_t i = 0; i < table.size(); ++i) {
    for (std::size_t c = 0; c < columns_; ++c) {
      const std::string_view text = table.label(i, c).raw;
      std::int64_t integer;
      float real;
      const bool is_integer = parse_field(text, integer);
      all_integers = all_integers && is_integer;
      all_whole = all_whole && (is_integer || is_whole_number(text));
      if (!is_integer && !too_large) too_large.emplace(i, c);
      if (is_integer || parse_field(text, real)) continue;
      throw table.error_at_row(
          ErrorKind::corrupt, i,
          fmt::format("the label (`{}`) is {}", label_name(table, c),
                      without_blanks(text).empty() ? "empty" : "not a number"),
          format_text("several label columns hold numbers only; a column of texts is used alone: {}",
                      option("label", "name")));
    }
  }
  if (all_whole && !all_integers) throw too_large_label(table, too_large->first, too_large->second);
  facts.label_kind = all_integers ? LabelKind::integer : LabelKind::real;
  (all_integers ? integers_.resize(table.size() * columns_) : reals_.resize(table.size() * columns_));
  for (std::uint64_t i = 0; i < table.size(); ++i) {
    for (std::size_t c = 0; c < columns_; ++c) {
      const std::string_view text = table.label(i, c).raw;
      const std::uint64_t at = i * columns_ + c;
      all_integers ? parse_field(text, integers_[at]) : parse_field(text, reals_[at]);
    }
  }
}

void CsvLabels::number_classes(const CsvTable& table, Facts& facts) {
  std::unordered_map<std::string_view, std::uint32_t> numbers;  // by the field as it stands in the text
  std::vector<CsvField> distinct;
  classes_.resize(table.size());
  for (std::uint64_t i = 0; i < table.size(); ++i) {
    const CsvField field = table.label(i, 0);
    const auto [at, is_new] = numbers.try_emplace(field.raw, static_cast<std::uint32_t>(distinct.size()));
    if (is_new) distinct.push_back(field);
    classes_[i] = at->second;
  }
  std::vector<std::string> names;
  names.reserve(distinct.size());
  for (const CsvField& field : distinct) names.push_back(field.text());
  facts.classes = names;
  std::sort(facts.classes.begin(), facts.classes.end());
  facts.classes.erase(std::unique(facts.classes.begin(), facts.classes.end()), facts.classes.end());
  std::vector<std::uint32_t> sorted(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto at = std::lower_bound(facts.classes.begin(), facts.classes.end(), names[i]);
    sorted[i] = static_cast<std::uint32_t>(at - facts.classes.begin());
  }
  for (std::uint32_t& c : classes_) c = sorted[c];
}

}  // namespace stoker::dataset
