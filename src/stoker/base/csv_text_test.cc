#include "stoker/base/csv_text.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

using Names = std::vector<std::string>;

std::vector<Names> rows_of(std::string_view text) {
  std::vector<Names> rows;
  std::vector<CsvField> fields;
  for (std::size_t at = 0; at < text.size();) {
    const CsvRow row = read_row(text, at, fields);
    if (row.problem != CsvProblem::none) break;
    at = row.end;
    rows.emplace_back();
    for (std::size_t c = 0; c < fields.size(); ++c) {
      rows.back().push_back(fields[c].text());
      EXPECT_EQ(field_of_row(text, row.begin, c)->text(), fields[c].text());
    }
    EXPECT_FALSE(field_of_row(text, row.begin, fields.size()));
  }
  return rows;
}

TEST(CsvText, WritesFieldsThatAreReadAsTheyWere) {
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"x\""), "\"say \"\"x\"\"\"");
  for (const char* text : {" a", "a ", "#a", "a\nb", "a\r", "\"", "a b", ""})
    EXPECT_EQ(rows_of(csv_field(text) + ",z"), (std::vector<Names>{{text, "z"}})) << text;
}

TEST(CsvText, ReadsQuotesLineBreaksAndBothLineEnds) {
  EXPECT_EQ(rows_of("a,b\n1,2\n"), (std::vector<Names>{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(rows_of("a,b\r\n1,2\r\n"), (std::vector<Names>{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(rows_of("a,\"b\"\r\n1,\"2\""), (std::vector<Names>{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(rows_of("\"x\ny\",\"say \"\"hi\"\"\",\"\"\n"), (std::vector<Names>{{"x\ny", "say \"hi\"", ""}}));
  EXPECT_EQ(rows_of("\"\"\"\"\n,\n"), (std::vector<Names>{{"\""}, {"", ""}}));
  EXPECT_EQ(rows_of("a"), (std::vector<Names>{{"a"}}));
  EXPECT_EQ(rows_of("a,\"b\"\r"), (std::vector<Names>{{"a", "b"}}));
}

TEST(CsvText, FindsQuotesThatAreNotClosedOrFollowedByText) {
  std::vector<CsvField> fields;
  EXPECT_EQ(read_row("a,\"b", 0, fields).problem, CsvProblem::unclosed_quote);
  EXPECT_EQ(read_row("a,\"b\"\"", 0, fields).problem, CsvProblem::unclosed_quote);
  EXPECT_EQ(read_row("a,\"b\"c\n", 0, fields).problem, CsvProblem::text_after_quote);
  EXPECT_EQ(read_row("\"", 0, fields).problem, CsvProblem::unclosed_quote);
}

}  // namespace
}  // namespace stoker
