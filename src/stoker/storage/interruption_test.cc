#include "stoker/storage/interruption.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::storage {
namespace {

using std::chrono::hours;

TEST(Interruption, EndsAPauseOfTheThreadThatMadeIt) {
  std::atomic<bool> wanted{false};
  Interruption interruption([&] { return wanted.load(); });
  const InterruptionScope scope(&interruption);
  check_interruption();
  wanted = true;
  EXPECT_THROW(pause_interruptibly(hours(1)), Error);
  EXPECT_TRUE(interruption.was_raised());
}

TEST(Interruption, ReachesThreadsThatShareItAndIsAskedOnlyByItsOwn) {
  const std::thread::id own = std::this_thread::get_id();
  std::atomic<bool> wanted{false}, asked_elsewhere{false}, is_waiting{false};
  Interruption interruption([&] {
    if (std::this_thread::get_id() != own) asked_elsewhere = true;
    return wanted.load();
  });
  bool has_ended = false;
  std::thread other([&] {
    const InterruptionScope scope(&interruption);
    is_waiting = true;
    try {
      pause_interruptibly(hours(1));
    } catch (const Error& error) {
      has_ended = error.kind() == ErrorKind::unavailable && error.message() == "interrupted";
    }
  });
  while (!is_waiting) std::this_thread::yield();
  wanted = true;
  EXPECT_TRUE(interruption.is_raised());
  other.join();
  EXPECT_TRUE(has_ended);
  EXPECT_FALSE(asked_elsewhere);
}

TEST(Interruption, IsOutOfForceWhereSomebodyCleansUp) {
  Interruption interruption([] { return true; });
  const InterruptionScope scope(&interruption);
  {
    const InterruptionScope uninterrupted(nullptr);
    EXPECT_NO_THROW(check_interruption());
    EXPECT_EQ(interruption_in_force(), nullptr);
  }
  EXPECT_THROW(check_interruption(), Error);
}

}  // namespace
}  // namespace stoker::storage
