#include "stoker/os/ring.h"

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "stoker/os/fault.h"
#include "stoker/os/fd.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::os {
namespace {

using std::chrono::milliseconds;

class RingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int error_number = 0;
    ring_ = Ring::try_make(8, error_number);
    if (!ring_) GTEST_SKIP() << "io_uring is refused here: error " << error_number;
  }
  void queue_nop(std::uint64_t user_data) {
    io_uring_sqe* const sqe = ring_.sqe();
    ASSERT_NE(sqe, nullptr);
    io_uring_prep_nop(sqe);
    sqe->user_data = user_data;
  }
  std::uint64_t sum_of_completions() {
    std::uint64_t sum = 0;
    ring_.take_completions([&](std::uint64_t user_data, int) { sum += user_data; });
    return sum;
  }
  Ring ring_;
};

TEST_F(RingTest, CompletesWhatWasQueued) {
  queue_nop(3);
  queue_nop(4);
  EXPECT_EQ(ring_.queued(), 2u);
  EXPECT_EQ(ring_.submit(), 0);
  EXPECT_EQ(ring_.queued(), 0u);
  EXPECT_EQ(sum_of_completions(), 7u);
}

TEST_F(RingTest, AFullQueueGivesNoEntryUntilSubmitted) {
  for (int i = 0; i < 8; ++i) queue_nop(1);
  EXPECT_EQ(ring_.sqe(), nullptr);
  EXPECT_EQ(ring_.submit(), 0);
  EXPECT_NE(ring_.sqe(), nullptr);
}

TEST_F(RingTest, WaitingEndsAfterTheTimeout) {
  EXPECT_EQ(ring_.submit_and_wait(milliseconds(5)), -ETIME);
  EXPECT_EQ(ring_.submit_and_wait(milliseconds(-5)), -ETIME);
}

TEST_F(RingTest, WorksInAThreadThatDidNotMakeItAndAfterAMove) {
  Ring moved = std::move(ring_);
  EXPECT_FALSE(ring_);
  ring_ = std::move(moved);
  std::jthread([this] {
    queue_nop(5);
    EXPECT_EQ(ring_.submit_and_wait(std::chrono::nanoseconds::max()), 0);
    EXPECT_EQ(sum_of_completions(), 5u);
  });
}

TEST_F(RingTest, AFailingEnterLeavesTheQueueForTheNextTry) {
  queue_nop(6);
  {
    const InjectFault fault(Call::ring_enter, {.error_number = EAGAIN});
    EXPECT_EQ(ring_.submit(), -EAGAIN);
    EXPECT_EQ(ring_.queued(), 1u);
  }
  EXPECT_EQ(ring_.submit(), 0);
  EXPECT_EQ(sum_of_completions(), 6u);
}

TEST_F(RingTest, KnowsWhichRequestsTheKernelTakes) {
  EXPECT_TRUE(ring_.supports(IORING_OP_NOP));
  EXPECT_FALSE(ring_.supports(250));
}

TEST(RefusedRing, IsEmptyAndSaysWhy) {
  for (const int refusal : {EPERM, ENOSYS, ENOMEM}) {
    const InjectFault fault(Call::ring_setup, {.error_number = refusal});
    int error_number = 0;
    EXPECT_FALSE(Ring::try_make(8, error_number));
    EXPECT_EQ(error_number, refusal);
  }
}

}  // namespace
}  // namespace stoker::os
