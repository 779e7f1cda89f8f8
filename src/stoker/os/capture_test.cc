#include "stoker/os/capture.h"

#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::os {
namespace {

using std::chrono::milliseconds;

TEST(Capture, KeepsWhatAProgramWritesAndHowItEnded) {
  const Captured captured = capture({"sh", "-c", "printf one; printf two; exit 3"}, milliseconds(60'000), 1000);
  EXPECT_EQ(captured.output, "onetwo");
  EXPECT_EQ(captured.code, 3);
  EXPECT_FALSE(captured.timed_out);
}

TEST(Capture, DropsWhatIsTooMuch) {
  const Captured captured = capture({"sh", "-c", "head -c 200000 /dev/zero"}, milliseconds(60'000), 1000);
  EXPECT_EQ(captured.output.size(), 1000u);
  EXPECT_EQ(captured.code, 0);
}

TEST(Capture, EndsAProgramThatTakesTooLong) {
  const Captured captured = capture({"sh", "-c", "printf begun; sleep 600"}, milliseconds(200), 1000);
  EXPECT_TRUE(captured.timed_out);
  EXPECT_EQ(captured.code, 128 + 9);
}

TEST(Capture, EndsAProgramAtOnceWhenTheCheckThrows) {
  int checks = 0;
  const auto stop = [&] {
    if (++checks == 2) throw Error(ErrorKind::unavailable, "interrupted");
  };
  EXPECT_THROW(capture({"sh", "-c", "sleep 600 & sleep 600"}, milliseconds(600'000), 1000, stop), Error);
  EXPECT_EQ(checks, 2);
}

TEST(Capture, GivesItNothingToRead) {
  EXPECT_EQ(capture({"cat"}, milliseconds(60'000), 1000).output, "");
}

TEST(Capture, AProgramThatIsNotThereIsNamed) {
  try {
    capture({"no-such-program-here"}, milliseconds(1000), 10);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
    EXPECT_NE(error.message().find("no-such-program-here"), std::string::npos);
  }
}

}  // namespace
}  // namespace stoker::os
