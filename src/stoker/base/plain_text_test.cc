#include "stoker/base/plain_text.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

using namespace std::string_literals;

TEST(PlainText, Utf16OfEitherByteOrderBecomesUtf8) {
  EXPECT_EQ(utf8_of_marked("\xFF\xFE\x63\0\xE9\0\x3D\xD8\x00\xDE"s), "c\xC3\xA9\xF0\x9F\x98\x80");
  EXPECT_EQ(utf8_of_marked("\xFE\xFF\0\x63\x20\xAC"s), "c\xE2\x82\xAC");
  EXPECT_EQ(utf8_of_marked("\xEF\xBB\xBF"
                           "cat"),
            "cat");
  EXPECT_EQ(utf8_of_marked("cat"), "cat");
  EXPECT_EQ(utf8_of_marked("\xFF\xFE\x00\xD8\x63\0\x01"s),
            "\xEF\xBF\xBD"
            "c"
            "\xEF\xBF\xBD")
      << "half a pair, half a unit";
}

TEST(PlainText, EscapeSequencesAreDropped) {
  EXPECT_EQ(without_escapes("\x1B[1;32mstep\x1B[0m 3\x1B[K"), "step 3");
  EXPECT_EQ(without_escapes("\x1B]0;title\x07loss\x1B]8;;\x1B\\ 1"), "loss 1");
  EXPECT_EQ(without_escapes("a\x1B(Bb\x1B"), "ab");
  EXPECT_EQ(without_escapes("a\x1B[1;3"), "a") << "cut";
}

}  // namespace
}  // namespace stoker
