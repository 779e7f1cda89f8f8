#include "stoker/base/shell.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Shell, PlainWordsStayAsTheyAre) {
  EXPECT_EQ(shell_word("--num-workers=4"), "--num-workers=4");
  EXPECT_EQ(shell_word("{batch_size}"), "{batch_size}");
}

TEST(Shell, OtherWordsAreQuoted) {
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("my data"), "'my data'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
}

}  // namespace
}  // namespace stoker
