#include "stoker/dicom/pool.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::dicom {
namespace {

// Answers with the line itself, dies at "crash", sleeps at "hang".
const std::vector<std::string> kShell = {
    "/bin/sh", "-c",
    "while read -r line; do case $line in *crash*) kill -SEGV $$;; *hang*) sleep 600;; esac; echo \"$line\"; done"};

std::vector<Answer> ask_all(WorkerPool& pool, const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) pool.submit({i, Json({{"word", words[i]}}).dump(), 10});
  std::vector<Answer> answers;
  while (pool.unanswered() > 0) pool.poll(std::chrono::milliseconds(100), answers);
  std::sort(answers.begin(), answers.end(), [](const Answer& a, const Answer& b) { return a.id < b.id; });
  return answers;
}

TEST(WorkerPool, AnswersEveryRequestOnce) {
  WorkerPool pool(kShell, {.workers = 3});
  const std::vector<Answer> answers = ask_all(pool, {"a", "b", "c", "d", "e", "f", "g"});
  ASSERT_EQ(answers.size(), 7u);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].id, i);
    EXPECT_EQ(answers[i].json["word"].text(), std::string(1, static_cast<char>('a' + i)));
  }
}

TEST(WorkerPool, ACrashCostsTheRequestThatCausedIt) {
  WorkerPool pool(kShell, {.workers = 1});
  const std::vector<Answer> answers = ask_all(pool, {"a", "crash", "b", "crash", "crash", "c"});
  ASSERT_EQ(answers.size(), 6u);
  for (const std::size_t i : {0u, 2u, 5u}) EXPECT_EQ(answers[i].failure, "") << i;
  for (const std::size_t i : {1u, 3u, 4u}) {
    EXPECT_NE(answers[i].failure.find("decoding it crashed"), std::string::npos) << answers[i].failure;
  }
}

TEST(WorkerPool, EndsARequestThatTakesTooLong) {
  WorkerPool pool(kShell, {.workers = 2, .time = std::chrono::milliseconds(200)});
  const std::vector<Answer> answers = ask_all(pool, {"a", "hang", "b"});
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_NE(answers[1].failure.find("took more than"), std::string::npos);
  EXPECT_EQ(answers[2].failure, "");
}

TEST(WorkerPool, KeepsTheMemoryLimitButNeverStands) {
  WorkerPool pool(kShell, {.workers = 4, .memory_bytes = 5});  // less than one request takes
  EXPECT_EQ(ask_all(pool, {"a", "b", "c"}).size(), 3u);
}

TEST(WorkerPool, SaysThatTheProgramDoesNotStart) {
  WorkerPool pool({"/bin/false"}, {.workers = 1});
  pool.submit({0, "{}", 1});
  std::vector<Answer> answers;
  EXPECT_THROW(
      {
        while (pool.unanswered() > 0) pool.poll(std::chrono::milliseconds(100), answers);
      },
      Error);
}

}  // namespace
}  // namespace stoker::dicom
