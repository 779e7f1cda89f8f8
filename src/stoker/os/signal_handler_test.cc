#include "stoker/os/signal_handler.h"

#include <atomic>
#include <cerrno>

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace stoker::os {
namespace {

std::atomic<int> last_signal{0};

TEST(SignalHandler, RunsForTheSignalAndInterruptsACallThatWaits) {
  catch_signal(SIGALRM, [](int signal) { last_signal = signal; });
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::ualarm(1000, 1000);  // again and again: the first one may come before the read
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), -1);
  EXPECT_EQ(errno, EINTR);
  ::ualarm(0, 0);
  EXPECT_EQ(last_signal, SIGALRM);
  ::signal(SIGALRM, SIG_DFL);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(SignalHandler, SeesThatASignalIsIgnored) {
  EXPECT_FALSE(is_signal_ignored(SIGUSR1));
  ::signal(SIGUSR1, SIG_IGN);
  EXPECT_TRUE(is_signal_ignored(SIGUSR1));
  ::signal(SIGUSR1, SIG_DFL);
}

}  // namespace
}  // namespace stoker::os
