#include "stoker/os/file_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace stoker::os {
namespace {

TEST(OpenFileLimit, IsTheOneInForceNow) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit lower = before;
  lower.rlim_cur = 77;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &lower), 0);
  EXPECT_EQ(open_file_limit(), 77u);
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(OpenFileLimit, IsRaisedUpToTheHardLimitAndNeverLowered) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit lower = before;
  lower.rlim_cur = 77;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &lower), 0);
  EXPECT_EQ(raise_open_file_limit(50), 77u);
  EXPECT_EQ(raise_open_file_limit(99), 99u);
  if (before.rlim_max != RLIM_INFINITY) {
    EXPECT_EQ(raise_open_file_limit(before.rlim_max + 10), before.rlim_max);
  }
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace stoker::os
