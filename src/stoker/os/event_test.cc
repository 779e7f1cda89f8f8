#include "stoker/os/event.h"

#include <array>
#include <thread>

#include <gtest/gtest.h>

namespace stoker::os {
namespace {

constexpr auto kForever = std::chrono::nanoseconds::max();

TEST(Event, StaysRaisedUntilItIsTaken) {
  Event event;
  EXPECT_FALSE(event.take());
  event.raise();
  event.raise();
  const std::array one = {event.descriptor()};
  wait_readable(one, kForever);
  wait_readable(one, kForever);
  EXPECT_TRUE(event.take());
  EXPECT_FALSE(event.take());
}

TEST(Event, EndsTheWaitForSeveralFromAnotherThread) {
  Event first, second;
  std::jthread other([&] { second.raise(); });
  const std::array both = {first.descriptor(), -1, second.descriptor()};
  while (!second.take()) wait_readable(both, kForever);
  EXPECT_FALSE(first.take());
}

TEST(Event, IsMadeWithoutExceptions) {
  int error_number = -1;
  Event event = Event::try_make(error_number);
  EXPECT_EQ(error_number, 0);
  ASSERT_TRUE(event);
  event.raise();
  EXPECT_TRUE(event.take());
}

TEST(Event, AWaitEndsWithItsTime) {
  wait_readable({}, std::chrono::milliseconds(1));
  wait_readable({}, std::chrono::nanoseconds(-1));
}

}  // namespace
}  // namespace stoker::os
