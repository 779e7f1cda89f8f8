#include "stoker/os/poller.h"

#include <array>
#include <chrono>
#include <memory>

#include <gtest/gtest.h>
#include <unistd.h>

#include "stoker/os/event.h"

namespace stoker::os {
namespace {

using std::chrono::milliseconds;

TEST(Poller, SaysWhichOfManyDescriptorsAreReady) {
  Poller poller;
  std::array<Event, 3> events;
  for (const Event& event : events) ASSERT_TRUE(poller.watch(event.descriptor(), true, false));
  std::array<Poller::Ready, 8> ready;
  EXPECT_EQ(poller.wait(ready, milliseconds(0)), 0u);
  events[1].raise();
  ASSERT_EQ(poller.wait(ready, milliseconds(60'000)), 1u);
  EXPECT_EQ(ready[0].descriptor, events[1].descriptor());
  EXPECT_TRUE(ready[0].readable);
  EXPECT_FALSE(ready[0].writable);
  poller.forget(events[1].descriptor());
  EXPECT_EQ(poller.wait(ready, milliseconds(0)), 0u);
}

TEST(Poller, ChangesWhatADescriptorIsWatchedFor) {
  Poller poller;
  const Event event;
  ASSERT_TRUE(poller.watch(event.descriptor(), true, false));
  ASSERT_TRUE(poller.watch(event.descriptor(), false, true));
  std::array<Poller::Ready, 2> ready;
  ASSERT_EQ(poller.wait(ready, milliseconds(60'000)), 1u);
  EXPECT_TRUE(ready[0].writable);
}

TEST(Poller, IsItselfReadyWhenOneOfThemIs) {
  Poller poller;
  Event event;
  ASSERT_TRUE(poller.watch(event.descriptor(), true, false));
  event.raise();
  const int all[] = {poller.descriptor()};
  wait_readable(all, milliseconds(60'000));
  std::array<Poller::Ready, 2> ready;
  EXPECT_EQ(poller.wait(ready, milliseconds(0)), 1u);
}

TEST(Poller, WatchesADescriptorWhoseNumberWasAnothers) {
  Poller poller;
  auto closed = std::make_unique<Event>();
  const int number = closed->descriptor();
  ASSERT_TRUE(poller.watch(number, true, false));
  closed.reset();  // nobody says so
  Event event;
  ASSERT_EQ(event.descriptor(), number);
  ASSERT_TRUE(poller.watch(number, true, false));
  event.raise();
  std::array<Poller::Ready, 2> ready;
  EXPECT_EQ(poller.wait(ready, milliseconds(60'000)), 1u);
}

TEST(Poller, WatchesADescriptorAgainThatItForgot) {
  Poller poller;
  Event event;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(poller.watch(event.descriptor(), true, false));
    poller.forget(event.descriptor());
  }
  ASSERT_TRUE(poller.watch(event.descriptor(), true, false));
  event.raise();
  std::array<Poller::Ready, 2> ready;
  EXPECT_EQ(poller.wait(ready, milliseconds(60'000)), 1u);
}

TEST(Poller, RefusesWhatIsNoDescriptor) {
  Poller poller;
  EXPECT_FALSE(poller.watch(-1, true, false));
  poller.forget(-1);
}

}  // namespace
}  // namespace stoker::os
