#include "stoker/os/library.h"

#include <filesystem>
#include <utility>

#include <gtest/gtest.h>

namespace stoker::os {
namespace {

TEST(Library, FindsTheFunctionsOfALibrary) {
  const Library library("libm.so.6");
  ASSERT_TRUE(library);
  auto* const root = library.find<double (*)(double)>("cbrt");
  ASSERT_NE(root, nullptr);
  EXPECT_DOUBLE_EQ(root(27), 3);
  EXPECT_EQ(library.find<void (*)()>("no_such_function"), nullptr);
}

TEST(Library, IsFalseWhereThereIsNone) {
  Library library("libno_such_library.so");
  EXPECT_FALSE(library);
  EXPECT_EQ(library.find<void (*)()>("cbrt"), nullptr);
  library = Library("libm.so.6");
  EXPECT_TRUE(library);
  const Library moved = std::move(library);
  EXPECT_TRUE(moved);
  EXPECT_FALSE(library);  // NOLINT(bugprone-use-after-move): what is left of it is defined
}

TEST(Library, TheFileOfThisCodeIsTheProgramThatRuns) {
  EXPECT_EQ(own_file(), std::filesystem::canonical("/proc/self/exe"));
}

}  // namespace
}  // namespace stoker::os
