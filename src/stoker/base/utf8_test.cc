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

}  // namespace
}  // namespace stoker
