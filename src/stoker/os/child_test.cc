#include "stoker/os/child.h"

#include <cerrno>
#include <cstdlib>

#include <gtest/gtest.h>
#include <unistd.h>

#include "stoker/base/error.h"

namespace stoker::os {
namespace {

using namespace std::chrono_literals;

Ended wait_for(Child& child, SignalGate& gate) {
  for (;;) {
    if (const auto ended = child.ended()) return *ended;
    gate.wait(1s);
  }
}

Ended run(const std::string& script, const std::map<std::string, std::string>& environment = {}) {
  SignalGate gate;
  Child child({"sh", "-c", script}, environment);
  return wait_for(child, gate);
}

TEST(Child, GivesItsExitCodeOrItsSignal) {
  EXPECT_EQ(run("exit 7").code, 7);
  const Ended killed = run("kill -9 $$");
  EXPECT_EQ(killed.code, 128 + 9);
  EXPECT_EQ(killed.signal, 9);
}

TEST(Child, HasOurEnvironmentAndTheAddedVariables) {
  setenv("STOKER_CHILD_OLD", "old", 1);
  EXPECT_EQ(run("test \"$STOKER_CHILD_OLD$STOKER_CHILD_NEW\" = replacednew",
                {{"STOKER_CHILD_OLD", "replaced"}, {"STOKER_CHILD_NEW", "new"}})
                .code,
            0);
  EXPECT_EQ(run("test \"$STOKER_CHILD_OLD\" = old").code, 0);
}

TEST(Child, StartsWithSignalsAsAShellWouldGiveThem) {
  signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(run("kill -PIPE $$; exit 0").signal, SIGPIPE);
  EXPECT_EQ(run("kill -TERM $$; exit 0").signal, SIGTERM);
}

TEST(Child, SaysWhichCommandDoesNotExist) {
  try {
    Child child({"no-such-program"}, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
    EXPECT_EQ(error.message(), "cannot run `no-such-program`: No such file or directory");
  }
}

TEST(Child, SaysSoAlsoWhereAFolderOfThePathIsClosed) {
  const Error missing = spawn_error(EACCES, "no-such-program", "");
  EXPECT_EQ(missing.message(), "cannot run `no-such-program`: No such file or directory");
  EXPECT_EQ(spawn_error(EACCES, "sh", "").message(), "cannot run `sh`: Permission denied");
  EXPECT_EQ(spawn_error(EACCES, "./no-such-program", "").message(),
            "cannot run `./no-such-program`: Permission denied");
}

TEST(Child, TellsHowItEndedThoughOurParentIgnoredThatOfItsOwn) {
  signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(run("exit 7").code, 7);
}

TEST(SignalGate, TellsASignalToUsFromOneToTheProcessGroup) {
  SignalGate gate;
  kill(getpid(), SIGUSR1);
  const auto caught = gate.wait(10s);
  ASSERT_TRUE(caught);
  EXPECT_EQ(caught->signal, SIGUSR1);
  EXPECT_FALSE(caught->reached_group);
  EXPECT_FALSE(gate.wait(1ms));
}

// In a process group of its own, so that nobody else gets the signals. Returns the number of the check that failed.
int signals_in_a_group_of_our_own() {
  setpgid(0, 0);
  SignalGate gate;
  for (int round = 0; round < 3; ++round) {
    kill(0, SIGINT);
    const auto to_all = gate.wait(10s);
    if (!to_all || to_all->signal != SIGINT || !to_all->reached_group) return 10 * round + 1;
    kill(getpid(), SIGINT);
    const auto to_us = gate.wait(10s);
    if (!to_us || to_us->signal != SIGINT || to_us->reached_group) return 10 * round + 2;
  }
  return gate.wait(1ms) ? 3 : 0;
}

TEST(SignalGate, KnowsASignalToItsGroupEachTime) {
  const pid_t child = fork();
  if (child == 0) _exit(signals_in_a_group_of_our_own());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace stoker::os
