#include "stoker/base/utf8.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Utf8, KeepsCharactersAndReplacesOtherBytes) {
  EXPECT_EQ(as_utf8("plain \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x94\xA5"), "plain \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x94\xA5");
  EXPECT_EQ(as_utf8("a\x80z"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(as_utf8("\xC3"), "\xEF\xBF\xBD") << "cut short";
  EXPECT_EQ(as_utf8("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD") << "longer than it need be";
  EXPECT_EQ(as_utf8("\xED\xA0\x80").size(), 9u) << "half of a pair";
  EXPECT_EQ(as_utf8(""), "");
}

TEST(Utf8, CutsBetweenCharacters) {
  EXPECT_EQ(as_utf8("abcdef", 6), "abcdef");
  EXPECT_EQ(as_utf8("abcdef", 3), "abc...");
  EXPECT_EQ(as_utf8("ab\xC3\xA9z", 3), "ab...");
}

TEST(Utf8, OneLineShowsWhatATerminalWouldObey) {
  EXPECT_EQ(one_line("a\nb\r\tc\x1B[31m\x07\x7F"), "a\\nb\\r\\tc\\x1B[31m\\x07\\x7F");
  EXPECT_EQ(one_line("\xC2\x9B"
                     "31m"),
            "\\x9B31m")
      << "the same as ESC [";
  EXPECT_EQ(one_line("\xE2\x80\xAEgnp"), "\\u202Egnp") << "from right to left";
  EXPECT_EQ(one_line("\xE2\x80\xA8"), "\\u2028") << "a line separator";
  EXPECT_EQ(one_line("caf\xE9 \xC3\xA9 \xF0\x9F\x94\xA5 \\n"), "caf\xE9 \xC3\xA9 \xF0\x9F\x94\xA5 \\n");
  EXPECT_EQ(one_line(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Utf8, PrintableShowsEveryByteThatIsNone) {
  EXPECT_EQ(printable("caf\xE9 \xC3\xA9\n"), "caf\\xE9 \xC3\xA9\\n");
  EXPECT_EQ(printable("\xED\xB2\x80\xF0\x9F"), "\\xED\\xB2\\x80\\xF0\\x9F");
  EXPECT_EQ(printable(printable("\x1B\xFF")), printable("\x1B\xFF"));
}

}  // namespace
}  // namespace stoker
