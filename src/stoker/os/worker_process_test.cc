#include "stoker/os/worker_process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "stoker/base/error.h"
#include "stoker/os/event.h"

namespace stoker::os {
namespace {

WorkerProcess run_shell(const std::string& script) {
  return WorkerProcess({"/bin/sh", "-c", script});
}

// Waits for `count` lines, or for the end.
std::vector<std::string> receive_lines(WorkerProcess& worker, std::size_t count) {
  std::vector<std::string> lines;
  while (lines.size() < count) {
    const int waited_for[] = {worker.descriptor()};
    wait_readable(waited_for, std::chrono::seconds(10));
    if (!worker.receive(lines)) break;
  }
  return lines;
}

TEST(WorkerProcess, AnswersLineByLine) {
  WorkerProcess worker = run_shell("while read -r line; do echo \"got $line\"; done");
  ASSERT_TRUE(worker.send("one"));
  ASSERT_TRUE(worker.send("two words"));
  EXPECT_EQ(receive_lines(worker, 2), (std::vector<std::string>{"got one", "got two words"}));
  EXPECT_TRUE(worker.wait().is_success());
}

TEST(WorkerProcess, JoinsLinesThatComeInPieces) {
  const std::string half(40000, 'x');
  WorkerProcess worker = run_shell("read -r line; printf '%s' \"$line\"; printf '%s\\n' \"$line\"");
  ASSERT_TRUE(worker.send(half));
  EXPECT_EQ(receive_lines(worker, 1), (std::vector<std::string>{half + half}));
}

TEST(WorkerProcess, TellsByWhichSignalItEnded) {
  WorkerProcess worker = run_shell("read -r line; kill -SEGV $$");
  ASSERT_TRUE(worker.send("go"));
  EXPECT_TRUE(receive_lines(worker, 1).empty());
  EXPECT_EQ(worker.wait().signal, SIGSEGV);
}

TEST(WorkerProcess, SendingToOneThatEndedIsNotTheEndOfUs) {
  WorkerProcess worker = run_shell("exit 3");
  EXPECT_TRUE(receive_lines(worker, 1).empty());
  EXPECT_EQ(worker.wait().code, 3);
  EXPECT_FALSE(worker.send("anybody?"));
}

TEST(WorkerProcess, IsGoneWhenItIsDropped) {
  pid_t pid = 0;
  {
    WorkerProcess worker = run_shell("sleep 600");
    pid = worker.pid();
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST(WorkerProcess, NamesAProgramThatDoesNotExist) {
  try {
    WorkerProcess worker({"/no/such/program"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("/no/such/program"), std::string::npos);
  }
}

}  // namespace
}  // namespace stoker::os
