#include "stoker/base/error.h"

#include <cerrno>
#include <string_view>

#include <gtest/gtest.h>

#include "stoker/base/format_text.h"

namespace stoker {
namespace {

TEST(Error, SystemErrorsNameOperationSubjectAndCause) {
  const Error error = system_error(ENOENT, "open", "a/b.wav");
  EXPECT_EQ(error.kind(), ErrorKind::not_found);
  EXPECT_EQ(error.message(), "cannot open `a/b.wav`: No such file or directory");
  EXPECT_EQ(error.cause(), "No such file or directory");
  EXPECT_EQ(Error(ErrorKind::usage, "cannot do it").cause(), "cannot do it") << "one without a cause is all cause";
  EXPECT_EQ(system_error(EMFILE, "open", "x").kind(), ErrorKind::unavailable);
  EXPECT_NE(system_error(EMFILE, "open", "x").hint().find("ulimit"), std::string::npos);
  EXPECT_EQ(system_error(EACCES, "open", "x").kind(), ErrorKind::permission);
}

TEST(Error, NearestOffersOnlyWhatIsNear) {
  constexpr std::string_view words[] = {"inspect", "load", "demo"};
  EXPECT_EQ(nearest("inspct", words, 3), "inspect");
  EXPECT_EQ(nearest("laod", words, 3), "load");
  EXPECT_EQ(nearest("zebra crossing", words, 3), "");
}

TEST(Error, AFileNameInItCanNeitherForgeALineNorCommandATerminal) {
  const Error error = system_error(2, "open", "a\nerror: forged\x1B[2J");
  EXPECT_EQ(error.message(), "cannot open `a\\nerror: forged\\x1B[2J`: No such file or directory");
}

TEST(Error, NamesTheOptionThatItConcerns) {
  const Error error =
      Error(ErrorKind::usage, format_text("{} is too small", option("memory_limit"))).about("memory_limit");
  EXPECT_EQ(error.option(), "memory_limit");
  EXPECT_STREQ(error.what(), "memory_limit is too small");
  EXPECT_EQ(error.text().in_flags([](std::string_view) { return true; }), "--memory-limit is too small");
  EXPECT_EQ(Error(ErrorKind::corrupt, "no option").option(), "");
}

}  // namespace
}  // namespace stoker
