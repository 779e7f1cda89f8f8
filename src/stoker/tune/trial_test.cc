// Trials that really misbehave, and what becomes of them.
#include "stoker/tune/trial.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/os/temp_folder_test.h"
#include "stoker/tune/blocks.h"
#include "stoker/tune/template.h"

namespace stoker::tune {
namespace {

using namespace std::chrono_literals;

std::string block(int steps, double seconds, bool warmup = false) {
  return "echo '{\"event\":\"block\",\"steps\":" + std::to_string(steps) +
         ",\"samples\":" + std::to_string(32 * steps) + ",\"seconds\":" + std::to_string(seconds) +
         ",\"warmup\":" + (warmup ? "true" : "false") + "}' >&3\n";
}
const std::string kDone = "echo '{\"event\":\"done\"}' >&3\n";

class Trials : public testing::Test {
 protected:
  TrialResult run(const std::string& script) {
    options_.command = {"sh", "-c", script};
    options_.folder = folder_.path();
    return run_trial(options_);
  }
  std::string file(const std::string& name) const {
    std::ifstream in(folder_.path() + "/" + name, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }

  os::TempFolder folder_;
  TrialOptions options_;
};

TEST_F(Trials, MakeARowOfWhatWasReported) {
  std::string script = "echo '{\"event\":\"hello\"}' >&3\n" + block(5, 9, true);
  for (int i = 0; i < 5; ++i) script += block(4, 0.5);
  script +=
      "echo '{\"event\":\"memory\",\"device_allocated_bytes\":1000,\"device_free_bytes\":5}' >&3\necho hi\n" + kDone;
  const TrialResult result = run(script);
  EXPECT_FALSE(result.failure);
  ASSERT_TRUE(result.row.ok());
  EXPECT_DOUBLE_EQ(*result.row.images_per_s, 256);
  EXPECT_EQ(result.row.steps, 20u);
  EXPECT_DOUBLE_EQ(*result.row.ci_low, 256);
  EXPECT_EQ(result.row.device_allocated_bytes, 1000u);
  EXPECT_EQ(file("stdout"), "hi\n");
  const std::string steps = file("steps.jsonl");
  EXPECT_EQ(std::count(steps.begin(), steps.end(), '\n'), 9);
}

TEST_F(Trials, CountBatchesThatWereReadyBefore) {
  const TrialResult result =
      run("echo '{\"event\":\"block\",\"steps\":4,\"samples\":128,\"seconds\":1,\"ready_change\":-2}' >&3\n" + kDone);
  EXPECT_DOUBLE_EQ(*result.row.images_per_s, 64);  // two of the four had been made before
}

TEST_F(Trials, TellWaitingForDataThoughItIsNotSplit) {
  const TrialResult result = run(
      "echo '{\"event\":\"block\",\"steps\":4,\"samples\":128,\"seconds\":1,\"data_s\":0.8,\"compute_s\":0.2}' >&3\n" +
      kDone);
  EXPECT_DOUBLE_EQ(*result.row.data_ms, 200);
  EXPECT_EQ(result.row.bound, "io_bound");
  EXPECT_EQ(result.row.verdict, "");
  EXPECT_GT(*result.row.trial_seconds, 0);
}

TEST_F(Trials, OfAJobThatCannotBeImportedAreTheUsersErrorWhateverItsWords) {
  const TrialResult result = run(
      "echo '{\"event\":\"error\",\"stage\":\"import\",\"type\":\"ImportError\",\"text\":\"x: Too many open files\","
      "\"file\":\"train.py\",\"line\":3}' >&3\nexit 1");
  EXPECT_EQ(result.row.status, Status::user_error);
  EXPECT_EQ(result.row.error, "ImportError: x: Too many open files (train.py, line 3)");
}

TEST_F(Trials, MayReportNonsense) {
  const TrialResult result =
      run("printf '{\"event\": "
          "5}\\n[1]\\nnull\\n{\"event\":\"error\",\"type\":null,\"text\":[]}\\n{\"event\":\"block\",\"steps\":\"x\"}"
          "\\n' >&3\n" +
          block(5, 1) + kDone);
  EXPECT_TRUE(result.row.ok()) << result.row.error;
}

TEST_F(Trials, KeepWhatWasMeasuredBeforeACrash) {
  const TrialResult result = run(block(5, 1) + "kill -SEGV $$");
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.row.status, Status::runtime_fault);
  EXPECT_DOUBLE_EQ(*result.row.images_per_s, 160);
  EXPECT_FALSE(result.row.ok());
  EXPECT_FALSE(result.row.error.empty());
}

TEST_F(Trials, ThatEndWithoutAWordAreNotOk) {
  const TrialResult result = run("exit 0");
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.row.status, Status::user_error);
}

TEST_F(Trials, OfAProgramThatFailsTellItsLastWords) {
  const TrialResult result = run("echo \"ModuleNotFoundError: No module named 'nothing'\" >&2; exit 1");
  EXPECT_EQ(result.row.status, Status::user_error);
  EXPECT_NE(result.row.error.find("No module named 'nothing'"), std::string::npos) << result.row.error;
}

TEST_F(Trials, ThatHangAreEndedThoughTheyIgnoreSIGTERM) {
  options_.heartbeat = 300ms;
  const TrialResult result = run("trap '' TERM USR1\n" + block(1, 0.01) + "while :; do sleep 1; done");
  EXPECT_EQ(result.row.status, Status::hang);
  EXPECT_LT(result.seconds, 60);
}

TEST_F(Trials, BeyondTheirDeadlineAreEnded) {
  options_.deadline = 300ms;
  const TrialResult result = run("sleep 1000");
  EXPECT_EQ(result.row.status, Status::hang);
}

TEST_F(Trials, BeyondTheirMemoryAreEndedBeforeTheKernelMust) {
  options_.memory_limit = 40 << 20;
  const TrialResult result = run("head -c 200000000 /dev/zero | tail -c 199999999 | sleep 60");
  EXPECT_EQ(result.row.status, Status::oom_host);
  EXPECT_GT(*result.row.host_peak_bytes, 40u << 20);
}

TEST_F(Trials, MayPrintWithoutEnd) {
  const TrialResult result = run(block(5, 1) + "head -c 300000000 /dev/zero\nhead -c 20000000 /dev/zero >&2\n" + kDone);
  EXPECT_TRUE(result.row.ok());
  EXPECT_LT(file("stdout").size(), 4u << 20);
  EXPECT_NE(file("stdout").find("left out"), std::string::npos);
}

TEST_F(Trials, AreMeasuredByWhatProgressBarsPrint) {
  options_.steps_from = StepsFrom::output;
  options_.batch_size = 32;
  options_.warmup_steps = 2;
  const TrialResult result =
      run("for i in 1 2; do printf ' 1%%|x| 1/9 [00:01<00:09, 99.0it/s]\\r' >&2; done; i=0; while [ $i -lt 5000 ]; do "
          "printf ' 5%%|#| 5/9 [00:01<00:09, 10.0it/s]\\r' >&2; i=$((i+1)); sleep 0.02; done");
  EXPECT_FALSE(result.failure) << result.row.error;
  ASSERT_TRUE(result.row.ok());
  EXPECT_NEAR(*result.row.images_per_s, 320, 1);
  EXPECT_NE(file("steps.jsonl").find("{\"event\":\"block\",\"steps\":"), std::string::npos);
}

TEST_F(Trials, ThatPrintEnoughAndEndAtOnceAreOk) {
  options_.steps_from = StepsFrom::output;
  options_.batch_size = 32;
  options_.warmup_steps = 1;
  for (int i = 0; i < 20; ++i) {
    const TrialResult result = run("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo '10.0it/s'; done");
    ASSERT_TRUE(result.row.ok()) << result.row.error;
  }
}

TEST_F(Trials, TheCallerMayEndAtAnyTime) {
  options_.command = {"sleep", "1000"};
  options_.folder = folder_.path();
  int asked = 0;
  const TrialResult result = run_trial(options_, [&] { return ++asked > 2; });
  EXPECT_TRUE(result.interrupted);
}

TEST(Rates, AreFoundInWhatJobsPrint) {
  const auto read = [](const std::string& text, const std::string& regex = "", double batch = 10) {
    RateReader reader(regex, batch);
    reader.add(text.substr(0, text.size() / 2));
    reader.add(text.substr(text.size() / 2));
    return reader.rates();
  };
  EXPECT_EQ(read("Epoch 1: 100%|###| 50/50 [00:10<00:00,  4.80it/s]\n"), (std::vector<double>{48}));
  EXPECT_EQ(read("50/50 [00:10<00:00,  2.50s/it, loss=1.2]\r"), (std::vector<double>{4}));
  EXPECT_EQ(read("step 3 loss 0.2 18.0 s/step\n"), (std::vector<double>{10.0 / 18.0}));
  EXPECT_EQ(read("throughput: 512.5 images/s\n", "throughput: ([0-9.]+)"), (std::vector<double>{512.5}));
  EXPECT_EQ(read("| 12.3k/64.0k [00:05<00:21, 1.93kimg/s]\r"), (std::vector<double>{1930}));
  EXPECT_EQ(read("epoch 2: 12,345.5 samples/sec\n2 images/s\n"), (std::vector<double>{12345.5, 2}));
  EXPECT_EQ(read("1.5kit/s\n"), (std::vector<double>{15000}));
  EXPECT_EQ(read("rate 12,345.6\n", "rate ([0-9.,]+)"), (std::vector<double>{12345.6}));
  EXPECT_TRUE(read("rate 12,5 img\nrate 1.2.3 img\n", "rate ([0-9.,]+)").empty()) << "whatever that is";
  EXPECT_TRUE(read("no rate here\n?it/s\n0it/s\n").empty());
  EXPECT_EQ(read("rate \x1B[1m12\x1B[0m\n", "rate ([0-9]+)"), (std::vector<double>{12})) << "in colour";
  EXPECT_TRUE(read(std::string(4000, 'a') + "b\n", "((a+)+)$").empty()) << "in linear time";
  EXPECT_THROW(RateReader("([0-9", 1), Error);
  EXPECT_THROW(RateReader("[0-9]+", 1), Error);
}

TEST(Rates, AreFoundByNamedGroups) {
  const auto read = [](const std::string& text, const std::string& pattern) {
    RateReader reader("", 10, pattern);
    reader.add(text);
    return reader.rates();
  };
  EXPECT_EQ(read("TS 3 | 0.5\n", R"(TS (?<step>\d+) \| (?<step_s>[\d.]+))"), (std::vector<double>{20}));
  EXPECT_EQ(read("took 250 ms\n", "took (?<step_ms>[0-9]+)"), (std::vector<double>{40}));
  EXPECT_EQ(read("2.5 per second\n", "(?<steps_per_s>[0-9.]+) per"), (std::vector<double>{25}));
  EXPECT_EQ(read("12,345.5 img\n", "(?<images_per_s>[0-9.,]+) img"), (std::vector<double>{12345.5}));
  EXPECT_TRUE(read("took 0 ms\n", "took (?<step_ms>[0-9]+)").empty());
  EXPECT_THROW(RateReader("", 1, "(?<queue>[0-9]+)"), Error) << "no rate";
}

TEST(FillIn, ReplacesKnobsAndLeavesOtherBraces) {
  std::set<std::string> used;
  const Point point = {{"batch_size", "32"}, {"lr", "0.1"}};
  EXPECT_EQ(fill_in("--bs={batch_size} {x} {\"a\": {lr}} {config} {", point, {{"config", "c.json"}}, used),
            "--bs=32 {x} {\"a\": 0.1} c.json {");
  EXPECT_EQ(used, (std::set<std::string>{"batch_size", "lr", "config"}));
}

}  // namespace
}  // namespace stoker::tune
