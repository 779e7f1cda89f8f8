#include "stoker/storage/s3/retry.h"

#include <gtest/gtest.h>

namespace stoker::storage::s3 {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(S3Retry, PausesDoubleUpToALimitWithJitter) {
  const RetryPolicy policy{.most_tries = 5, .first = milliseconds(100), .longest = seconds(1)};
  EXPECT_EQ(policy.pause(1, 0), milliseconds(50));
  EXPECT_EQ(policy.pause(1, 0.5), milliseconds(75));
  EXPECT_EQ(policy.pause(2, 0), milliseconds(100));
  EXPECT_EQ(policy.pause(4, 0), milliseconds(400));
  EXPECT_EQ(policy.pause(5, 0), milliseconds(500));
  EXPECT_EQ(policy.pause(1000, 0), milliseconds(500));
  EXPECT_LT(policy.pause(1000, 0.999), seconds(1));
}

TEST(S3Retry, WaitsAsLongAsTheServerAsksUpToALimit) {
  const RetryPolicy policy{.longest = seconds(8)};
  EXPECT_EQ(policy.pause(1, 0, seconds(3)), seconds(3));
  EXPECT_EQ(policy.pause(1, 0, seconds(3600)), seconds(32));
}

TEST(S3Retry, EndsAfterTheLastTry) {
  const RetryPolicy policy{.most_tries = 3};
  EXPECT_TRUE(policy.may_try_again(2));
  EXPECT_FALSE(policy.may_try_again(3));
}

// `rounds` windows of requests that all take `latency`, at `per_second`.
void run(DepthControl& control, Time& now, int rounds, int per_second, Duration latency) {
  for (int i = 0; i < rounds * per_second / 4; ++i) control.finished(now += Duration(seconds(1)) / per_second, latency);
}

TEST(S3Depth, IsTheCapWhereRequestsTakeAsLongAsTheQuickest) {
  DepthControl control(256);
  Time now{seconds(1000)};
  EXPECT_EQ(control.limit(), 256u);
  run(control, now, 20, 5000, milliseconds(20));
  EXPECT_EQ(control.limit(), 256u);
}

TEST(S3Depth, FollowsRateTimesLatencyWhereRequestsQueue) {
  DepthControl control(256);
  Time now{seconds(1000)};
  run(control, now, 2, 4000, milliseconds(5));   // 20 in flight would do
  run(control, now, 6, 4000, milliseconds(60));  // 240 of them only wait
  EXPECT_LE(control.limit(), 128u);
  EXPECT_GE(control.limit(), 32u);
  run(control, now, 30, 4000, milliseconds(5));
  EXPECT_EQ(control.limit(), 256u) << "it grows again";
}

TEST(S3Depth, HalvesOnceForManyAnswersOfOneOverload) {
  DepthControl control(256);
  Time now{seconds(1000)};
  for (int i = 0; i < 100; ++i) control.throttled(now += milliseconds(1));
  EXPECT_EQ(control.limit(), 128u);
  control.throttled(now += seconds(2));
  EXPECT_EQ(control.limit(), 64u);
  for (int i = 0; i < 20; ++i) control.throttled(now += seconds(2));
  EXPECT_EQ(control.limit(), 1u);
  run(control, now, 200, 4000, milliseconds(5));
  EXPECT_EQ(control.limit(), 256u);
}

TEST(S3Hedge, KnowsNothingAtFirst) {
  HedgeControl control;
  EXPECT_FALSE(control.patience());
  for (int i = 0; i < 100; ++i) control.answered(milliseconds(20));
  EXPECT_FALSE(control.patience());
}

TEST(S3Hedge, HasTwiceThePatienceOfTheSlowestTwentieth) {
  HedgeControl control;
  for (int i = 0; i < 512; ++i) control.answered(milliseconds(i % 10 == 0 ? 100 : 20));
  EXPECT_EQ(control.patience(), milliseconds(200));
  for (int i = 0; i < 512; ++i) control.answered(milliseconds(1));
  EXPECT_EQ(control.patience(), milliseconds(20)) << "never below";
}

TEST(S3Hedge, OnlyAShareOfTheRequestsIsHedged) {
  HedgeControl control;
  int hedged = 0;
  for (int i = 0; i < 10'000; ++i) {
    control.answered(milliseconds(20));
    while (control.patience()) {
      control.hedged();
      ++hedged;
    }
  }
  EXPECT_GT(hedged, 400);
  EXPECT_LE(hedged, 500);
}

}  // namespace
}  // namespace stoker::storage::s3
