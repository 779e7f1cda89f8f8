// Comma-separated text as RFC 4180 has it: quotes, doubled quotes, line breaks inside quotes; CRLF or LF.
// Reads one row at a time from memory and copies nothing; writes fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

// A field as it stands in the text: without its outer quotes, but with doubled quotes inside still doubled.
struct CsvField {
  std::string_view raw;
  bool has_doubled_quotes = false;

  std::string text() const;
};

enum class CsvProblem : std::uint8_t { none, unclosed_quote, text_after_quote };

struct CsvRow {
  std::size_t begin = 0;  // in the text
  std::size_t end = 0;    // where the next row begins
  CsvProblem problem = CsvProblem::none;
  bool is_blank = false;  // nothing on the line
};

// Reads the row that begins at `begin` < text.size(); `fields` is overwritten and borrows from `text`.
CsvRow read_row(std::string_view text, std::size_t begin, std::vector<CsvField>& fields);

// One field of a sound row; nothing where the row has fewer.
std::optional<CsvField> field_of_row(std::string_view text, std::size_t begin, std::size_t column) noexcept;

// Without spaces and tabs at either end.
std::string_view without_blanks(std::string_view text) noexcept;

// As a row holds it: in quotes where a comma, a quote, a line end, a space at either end or a `#` at the start would
// be read as something else.
std::string csv_field(std::string_view text);

}  // namespace stoker
