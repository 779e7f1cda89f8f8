#include "stoker/os/isolated.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/os/process.h"

namespace stoker::os {
namespace {

using namespace std::chrono_literals;

struct Heard {
  std::string out, err, report;
  std::uint64_t bytes = 0;
  Ended ended;
};

Heard run_isolated(const std::string& script) {
  Heard heard;
  Isolated child({"sh", "-c", script}, {{"GREETING", "hello"}});
  for (bool over = false; !over;) {
    over = child.ended().has_value();  // what it wrote before that is still to be heard
    child.listen(100ms, [&](Stream stream, std::string_view text) {
      heard.bytes += text.size();
      std::string& kept = stream == Stream::out ? heard.out : stream == Stream::err ? heard.err : heard.report;
      if (kept.size() < 1000) kept += text;
    });
  }
  heard.ended = child.ended().value_or(Ended{.code = -1});
  return heard;
}

// Waits for a process that somebody else must have ended.
bool is_gone(int pid) {
  for (int i = 0; i < 1000; ++i) {
    const auto counters = process_counters(pid);
    if (!counters || counters->state == 'Z') return true;
    ::usleep(5000);
  }
  return false;
}

TEST(Isolated, HearsOutputErrorsAndReportsApart) {
  const Heard heard = run_isolated("echo $GREETING; echo oh >&2; echo '{\"a\":1}' >&$STOKER_REPORT_FD; exit 3");
  EXPECT_EQ(heard.out, "hello\n");
  EXPECT_EQ(heard.err, "oh\n");
  EXPECT_EQ(heard.report, "{\"a\":1}\n");
  EXPECT_EQ(heard.ended.code, 3);
  EXPECT_EQ(heard.ended.signal, 0);
}

TEST(Isolated, TellsHowItEndedThoughOurParentIgnoredThatOfItsOwn) {
  ::signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(run_isolated("exit 7").ended.code, 7);
}

TEST(Isolated, TellsTheSignalThatEndedIt) {
  const Heard heard = run_isolated("kill -SEGV $$");
  EXPECT_EQ(heard.ended.signal, SIGSEGV);
  EXPECT_EQ(heard.ended.code, 128 + SIGSEGV);
}

TEST(Isolated, DrainsWhateverIsPrinted) {
  EXPECT_EQ(run_isolated("head -c 50000000 /dev/zero").bytes, 50'000'000u);
}

TEST(Isolated, NamesACommandThatDoesNotExist) {
  EXPECT_THROW(Isolated({"/no/such/program"}, {}), Error);
}

TEST(Isolated, EndsWhatWasLeftBehindEvenInASessionOfItsOwn) {
  Isolated child({"sh", "-c", "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; sleep 0.3"}, {});
  std::string out;
  for (int i = 0; i < 100 && !child.ended(); ++i) {
    child.listen(50ms, [&](Stream, std::string_view text) { out += text; });
  }
  ASSERT_TRUE(child.ended());
  EXPECT_GE(child.end(), 2u);
  const std::size_t line = out.find('\n');
  ASSERT_NE(line, std::string::npos) << out;
  EXPECT_TRUE(is_gone(std::stoi(out)));
  EXPECT_TRUE(is_gone(std::stoi(out.substr(line + 1))));
}

TEST(Isolated, EndsWhatWasLeftBehindBeforeAnybodyLooked) {
  // setsid forks, since it leads a group, and both parents of what it started are gone within milliseconds.
  Isolated child({"sh", "-c", "setsid --fork sh -c 'echo $$; exec sleep 1000' & wait; sleep 0.05"}, {});
  while (!child.ended()) ::usleep(1000);
  std::string out;
  for (int i = 0; i < 30'000 && out.find('\n') == std::string::npos; ++i) {  // it may get no core for long
    child.listen(50ms, [&](Stream, std::string_view text) { out += text; });
    ::usleep(1000);
  }
  ASSERT_FALSE(out.empty());
  EXPECT_EQ(child.end(), 1u);
  EXPECT_TRUE(is_gone(std::stoi(out)));
}

TEST(Isolated, EndsAProcessThatIgnoresSIGTERM) {
  int pid = 0;
  {
    Isolated child({"sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"}, {});
    pid = child.pid();
    std::string out;
    while (out.empty()) child.listen(50ms, [&](Stream, std::string_view text) { out += text; });
    child.send(SIGTERM);
    child.listen(100ms, [](Stream, std::string_view) {});
    EXPECT_FALSE(child.ended());
  }
  EXPECT_TRUE(is_gone(pid));
}

TEST(Isolated, RemovesSharedMemoryOfItsProcessesOnly) {
  const std::string mine = "/dev/shm/torch_" + std::to_string(::getpid()) + "_stoker_test";
  if (!(std::ofstream(mine) << "x" << std::flush)) GTEST_SKIP() << "cannot write to /dev/shm";
  std::string theirs;
  {
    Isolated child({"sh", "-c", "echo x > /dev/shm/torch_$$_stoker_test; sleep 0.3"}, {});
    theirs = "/dev/shm/torch_" + std::to_string(child.pid()) + "_stoker_test";
    while (!child.ended()) child.listen(50ms, [](Stream, std::string_view) {});
  }
  EXPECT_TRUE(std::filesystem::exists(mine));
  EXPECT_FALSE(std::filesystem::exists(theirs));
  std::filesystem::remove(mine);
}

// A process that starts `script` in a shell, waits until it has printed the number of a process, and is then killed.
// Gives that number, and the one of the shell.
std::pair<int, int> killed_while_running(const std::string& script) {
  int pipe[2];
  if (::pipe(pipe) != 0) return {0, 0};
  const pid_t tuner = ::fork();
  if (tuner == 0) {
    try {
      Isolated isolated({"sh", "-c", script}, {});
      std::string out;
      while (out.find('\n') == std::string::npos)
        isolated.listen(50ms, [&](Stream, std::string_view text) { out += text; });
      const int told[] = {std::stoi(out), isolated.pid()};
      (void)!::write(pipe[1], told, sizeof told);
      for (;;) ::pause();
    } catch (...) {
    }
    ::_exit(1);
  }
  ::close(pipe[1]);
  int told[] = {0, 0};
  (void)!::read(pipe[0], told, sizeof told);
  ::close(pipe[0]);
  ::kill(tuner, SIGKILL);
  ::waitpid(tuner, nullptr, 0);
  return {told[0], told[1]};
}

TEST(Isolated, EndsWithAProcessThatIsKilled) {
  for (const char* script : {
           "echo $$; exec sleep 600",
           "sleep 600 & echo $!; wait",                                     // a shell that waits for its child
           "env -i sleep 600 & echo $!; wait",                              // which has no variable of ours
           "setsid --fork sh -c 'echo $$; exec sleep 600'; exec sleep 600"  // and one that left the group
       }) {
    const auto [pid, shell] = killed_while_running(script);
    ASSERT_GT(pid, 1) << script;
    EXPECT_TRUE(is_gone(pid)) << script;
    EXPECT_TRUE(is_gone(shell)) << script;
  }
}

TEST(Isolated, LeavesNoGuardBehind) {
  const std::size_t before = process_tree(::getpid()).size();  // with what other tests left to this process
  {
    Isolated child({"sleep", "600"}, {});
    EXPECT_EQ(process_tree(::getpid()).size(), before + 2) << "it and its guard";
  }
  EXPECT_EQ(process_tree(::getpid()).size(), before);
}

TEST(Isolated, ItsMarkEndsItsGroupThoughItHasEnded) {
  Isolated child({"sh", "-c", "env -i sleep 600 & echo $!; wait"}, {});
  const std::string mark = child.mark();
  std::string out;
  while (out.find('\n') == std::string::npos) child.listen(50ms, [&](Stream, std::string_view text) { out += text; });
  ::kill(child.pid(), SIGKILL);
  while (!child.ended()) ::usleep(1000);
  EXPECT_TRUE(end_marked(mark));
  EXPECT_TRUE(is_gone(std::stoi(out)));
}

// As by `docker exec`: the session's leader is outside, and its number is 0 for everybody inside.
TEST(Isolated, ItsMarkEndsItsGroupInAContainerToo) {
  const std::string inside = "unshare --pid --fork --mount-proc ";
  if (std::system((inside + "true 2> /dev/null").c_str()) != 0) GTEST_SKIP() << "no right to make a pid namespace";
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  EXPECT_EQ(
      std::system((inside + "'" + self + "' --gtest_filter=Isolated.ItsMarkEndsItsGroupThoughItHasEnded").c_str()), 0);
}

TEST(Isolated, IsKnownAgainByItsMarkAndByNoOther) {
  Isolated child({"sleep", "1000"}, {});
  const std::string mark = child.mark();
  std::istringstream fields(mark);
  std::string pid, start, boot, owner;
  ASSERT_TRUE(fields >> pid >> start >> boot >> owner) << mark;
  EXPECT_FALSE(end_marked(""));
  EXPECT_FALSE(end_marked(pid + " 1 " + boot)) << "the number was reused";
  EXPECT_FALSE(end_marked(pid + " 1 " + boot + " somebody-else"));
  EXPECT_FALSE(end_marked(pid + " " + start + " another-boot " + owner));
  EXPECT_FALSE(child.ended());
  EXPECT_TRUE(end_marked(mark));
  EXPECT_TRUE(is_gone(child.pid()));
  EXPECT_FALSE(end_marked(mark));
}

TEST(Isolated, ItsMarkAlsoEndsWhatLeftIt) {
  Isolated child({"sh", "-c", "setsid --fork sh -c 'echo $$; exec sleep 1000'; sleep 1000"}, {});
  const std::string mark = child.mark();
  std::string out;
  while (out.find('\n') == std::string::npos) child.listen(50ms, [&](Stream, std::string_view text) { out += text; });
  child.send(SIGKILL);  // its group only
  while (!child.ended()) ::usleep(1000);
  EXPECT_TRUE(end_marked(mark));
  EXPECT_TRUE(is_gone(std::stoi(out)));
}

}  // namespace
}  // namespace stoker::os
