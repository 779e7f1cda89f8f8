#include "stoker/base/csv_text.h"

#include <cstring>

namespace stoker {
namespace {

enum class Ended : std::uint8_t { field, row, unclosed_quote, text_after_quote };

// Reads the field at `at` and moves `at` behind its comma or line break.
Ended read_field(std::string_view text, std::size_t& at, CsvField& field) noexcept {
  const std::size_t size = text.size();
  field.has_doubled_quotes = false;
  std::size_t begin = at, end;
  if (at < size && text[at] == '"') {
    begin = ++at;
    for (;;) {
      const void* quote = at < size ? std::memchr(text.data() + at, '"', size - at) : nullptr;
      if (quote == nullptr) return Ended::unclosed_quote;
      at = static_cast<std::size_t>(static_cast<const char*>(quote) - text.data());
      if (at + 1 >= size || text[at + 1] != '"') break;
      field.has_doubled_quotes = true;
      at += 2;
    }
    end = at++;
    if (at + 1 < size && text[at] == '\r' && text[at + 1] == '\n') ++at;
    if (at + 1 == size && text[at] == '\r') ++at;
    if (at < size && text[at] != ',' && text[at] != '\n') return Ended::text_after_quote;
  } else {
    while (at < size && text[at] != ',' && text[at] != '\n') ++at;
    end = at;
    const bool ends_row = at == size || text[at] == '\n';
    if (ends_row && end > begin && text[end - 1] == '\r') --end;
  }
  field.raw = text.substr(begin, end - begin);
  if (at == size) return Ended::row;
  return text[at++] == ',' ? Ended::field : Ended::row;
}

}  // namespace

std::string CsvField::text() const {
  std::string text(raw);
  if (!has_doubled_quotes) return text;
  std::size_t to = 0;
  for (std::size_t from = 0; from < text.size(); ++from) {
    text[to++] = text[from];
    if (text[from] == '"') ++from;
  }
  text.resize(to);
  return text;
}

CsvRow read_row(std::string_view text, std::size_t begin, std::vector<CsvField>& fields) {
  fields.clear();
  CsvRow row{.begin = begin};
  std::size_t at = begin;
  for (;;) {
    CsvField field;
    const Ended ended = read_field(text, at, field);
    if (ended == Ended::unclosed_quote) row.problem = CsvProblem::unclosed_quote;
    if (ended == Ended::text_after_quote) row.problem = CsvProblem::text_after_quote;
    if (row.problem != CsvProblem::none) return row;
    fields.push_back(field);
    if (ended == Ended::row) break;
  }
  row.end = at;
  row.is_blank = fields.size() == 1 && fields[0].raw.empty() && text[begin] != '"';
  return row;
}

std::optional<CsvField> field_of_row(std::string_view text, std::size_t begin, std::size_t column) noexcept {
  std::size_t at = begin;
  CsvField field;
  for (;; --column) {
    const Ended ended = read_field(text, at, field);
    if (ended == Ended::unclosed_quote || ended == Ended::text_after_quote) return std::nullopt;
    if (column == 0) return field;
    if (ended == Ended::row) return std::nullopt;
  }
}

std::string_view without_blanks(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string csv_field(std::string_view text) {
  const bool is_plain = text.find_first_of(",\"\r\n") == std::string_view::npos && !text.starts_with(' ') &&
                        !text.ends_with(' ') && !text.starts_with('#');
  if (is_plain) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace stoker
