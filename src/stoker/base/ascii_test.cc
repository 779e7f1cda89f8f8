#include "stoker/base/ascii.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Ascii, LowersLettersAndNothingElse) {
  EXPECT_EQ(to_lower("AZaz[@`{09._-"), "azaz[@`{09._-");
  EXPECT_EQ(to_lower("\xC3\x84.JPG"), "\xC3\x84.jpg");
  EXPECT_EQ(to_lower(""), "");
}

TEST(Ascii, ComparesTheEndOfNamesInAnyCase) {
  EXPECT_TRUE(ends_with_any_case("photo.JpG", ".jpg"));
  EXPECT_TRUE(ends_with_any_case(".jpg", ".jpg"));
  EXPECT_FALSE(ends_with_any_case("jpg", ".jpg"));
  EXPECT_FALSE(ends_with_any_case("photo.jpg ", ".jpg"));
}

}  // namespace
}  // namespace stoker
