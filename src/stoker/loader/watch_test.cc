#include "stoker/loader/watch.h"

#include <gtest/gtest.h>

namespace stoker::loader {
namespace {

constexpr std::int64_t kMs = 1'000'000;

TEST(Watch, AsksNowAndThen) {
  const std::atomic<std::uint64_t> progress{0};
  const Interrupted gives_up = [] { return true; };
  Watch watch(progress, {}, gives_up, 0);
  EXPECT_FALSE(watch.is_due(49 * kMs));
  EXPECT_TRUE(watch.is_due(50 * kMs));
  EXPECT_FALSE(watch.is_due(99 * kMs)) << "counted from when it was asked last";
  EXPECT_TRUE(watch.can_ask());
  EXPECT_TRUE(watch.gives_up());
}

TEST(Watch, SaysHowLongNothingHasMoved) {
  std::atomic<std::uint64_t> progress{7};
  const Interrupted nobody;
  Watch watch(progress, std::chrono::milliseconds(100), nobody, 0);
  EXPECT_FALSE(watch.can_ask());
  EXPECT_EQ(watch.too_long(99 * kMs).count(), 0);
  EXPECT_EQ(watch.too_long(100 * kMs).count(), 100 * kMs);
  ++progress;
  EXPECT_EQ(watch.too_long(300 * kMs).count(), 0) << "something moved";
  EXPECT_EQ(watch.too_long(399 * kMs).count(), 0);
  EXPECT_EQ(watch.too_long(400 * kMs).count(), 100 * kMs);
}

TEST(Watch, WaitsForEverWithoutATimeout) {
  const std::atomic<std::uint64_t> progress{0};
  const Interrupted nobody;
  Watch watch(progress, {}, nobody, 0);
  EXPECT_EQ(watch.too_long(std::int64_t{1} << 60).count(), 0);
}

}  // namespace
}  // namespace stoker::loader
