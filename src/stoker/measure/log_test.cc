#include "stoker/measure/log.h"

#include <filesystem>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "stoker/base/error.h"

namespace stoker::measure {
namespace {

double step_s(const std::string& text) {
  return parse_log(text).step_s.value_or(-1);
}

TEST(Log, StepTimesOfProgressBarsAndOfLinesThatNameThem) {
  EXPECT_NEAR(step_s("12/100 [03:36<26:24, 18.02s/it]\r13/100 [03:54<26:06, 18.01s/it]\n"), 18.01, 1e-9);
  EXPECT_NEAR(step_s("100%|##| 5/5 [00:01<00:00,  4.00it/s]"), 0.25, 1e-9);
  EXPECT_NEAR(step_s("Train step 120/4000 loss 0.52 step_time=18.1s data 15.9s"), 18.1, 1e-9);
  EXPECT_NEAR(step_s("Train step 120: loss=0.52, 220 ms/step"), 0.22, 1e-9);
  EXPECT_NEAR(step_s("step_time=2.5e-3s"), 0.0025, 1e-9);
  EXPECT_NEAR(step_s("2.5e-02s/it"), 0.025, 1e-9);
  EXPECT_NEAR(step_s("step 3 loss=1e-3 step_time: 4e-2 s"), 0.04, 1e-9);
  EXPECT_NEAR(step_s("step_time=1,234s"), 1234, 1e-9);
  EXPECT_FALSE(parse_log("step_time=1e400s").step_s);
  EXPECT_NEAR(step_s("INFO Train Step 120 | loss 0.52 | 18.0s"), 18.0, 1e-9);
  EXPECT_NEAR(step_s("train step 7 took 17.9 seconds"), 17.9, 1e-9);
  EXPECT_EQ(step_s("nothing it/s here"), -1);
  EXPECT_EQ(step_s("step by step, 3 s at a time"), -1);
}

TEST(Log, WithoutATimeTheClockOfTheLinesTellsIt) {
  EXPECT_NEAR(step_s("2026-01-03 23:59:10,000 INFO Train step 10/4000 loss=0.61\n"
                     "2026-01-04 00:00:40,000 INFO Train step 15/4000 loss=0.60\n"),
              18, 1e-6);
  EXPECT_NEAR(step_s("[23:59:50] Train step 1 loss 2\n[00:00:08] Train step 2 loss 1\n"), 18, 1e-6);
  // A dated clock that was set back is no night.
  EXPECT_NEAR(step_s("2026-01-03 10:59:50 step 1\n2026-01-03 11:00:00 step 2\n2026-01-03 10:00:00 step 3\n"), 10, 1e-6);
  // These times count from the start of the run; the differences are the steps.
  EXPECT_NEAR(step_s("Train step 10 180s\nTrain step 20 361s\nTrain step 30 540s\n"), 18, 1e-6);
  EXPECT_EQ(*parse_log("Train step 10/4000 18.0s").of_steps, 4000u);
}

TEST(Log, FindsMemoryThatRanOutInAnyCaseAndNothingElse) {
  const auto troubles = [](const std::string& text) { return parse_log(text).trouble.size(); };
  EXPECT_EQ(troubles("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\nfine\n"), 1u);
  EXPECT_EQ(troubles("CUDA Out Of Memory"), 1u);
  EXPECT_EQ(troubles("Killed\nslurmstepd: Detected 1 oom-kill event\nOOM at batch 8\nOOMKilled\nprocess KILLED"), 5u);
  EXPECT_EQ(troubles("a skilled zoom into the room\nbloom filter\noomph"), 0u);
}

TEST(Log, EachEpochKeepsItsLastRate) {
  const LogFacts log = parse_log(
      "Epoch 0:  50%|#    | 97/195 [03:48<03:48, 0.42it/s]\rEpoch 0: 100%|##| 195/195 [07:37<00:00,  0.43it/s]\n"
      "Epoch 1: 100%|##| 195/195 [02:16<00:00,  1.42it/s]\nEpoch 2: 100%|##| 195/195 [01:56<00:00,  1.60it/s]\n");
  ASSERT_EQ(log.epochs.size(), 3u);
  EXPECT_NEAR(log.epochs[0].steps_per_s, 0.43, 1e-9);
  EXPECT_NEAR(log.epochs[2].steps_per_s, 1.60, 1e-9);
}

TEST(Log, FiguresWithANameAndAUnitAreKept) {
  const LogFacts log = parse_log(
      "2026-01-03 12:00:01 INFO builder: Disk I/O: 11.5s (95.6%)\n- GPU: 0.5s (4.4%)\nQueue Depth: avg=2.2\n"
      "GPU Throughput: 77,000 files/s | GPU Usage: 2.9%\nloss: 0.52\nepoch: 3\nstart: 12:30:00\n"
      "Disk I/O: 12.5s\n");
  std::vector<std::string> names;
  for (const LogFigure& figure : log.figures) names.push_back(figure.name + "|" + figure.unit);
  EXPECT_EQ(names,
            (std::vector<std::string>{"Disk I/O|s", "GPU|s", "Queue Depth|", "GPU Throughput|files/s", "GPU Usage|%"}));
  EXPECT_EQ(log.figures[0].values, (std::vector<double>{11.5, 12.5}));
  EXPECT_EQ(log.figures[0].median(), 12);
  EXPECT_EQ(log.figures[3].values.at(0), 77000);
}

TEST(Log, NumbersHaveExponentsAndNamesHaveNoQuotes) {
  const LogFacts facts =
      parse_log("{'loss': 0.5, 'eval_time': 4.9e-05, 'train_samples_per_second': 41.494, 'rate_e': 2e}\n");
  const auto value_of = [&](std::string_view name) {
    const auto found = std::find_if(facts.figures.begin(), facts.figures.end(),
                                    [&](const LogFigure& one) { return one.name == name; });
    return found == facts.figures.end() ? -1.0 : found->values.at(0);
  };
  EXPECT_EQ(value_of("eval_time"), 4.9e-05);
  EXPECT_EQ(value_of("train_samples_per_second"), 41.494);
}

TEST(Log, NumbersHaveThousandsAndDecimalCommasAndStepsAreNoPartOfAName) {
  const LogFacts log = parse_log(
      "GPU Throughput: 121k files/s\nstep_time=1,5s\nSpeed: 1.2M rows/s\nDisk rate: 12 MB/s\nbox_rate: 1,5\n"
      "step 7 Throughput: 101 img/s\nstep 8 Throughput: 103 img/s\nEpoch 2 step 3/9 Throughput: 105 img/s\n");
  std::vector<std::pair<std::string, std::vector<double>>> seen;
  for (const LogFigure& figure : log.figures) seen.emplace_back(figure.name + " " + figure.unit, figure.values);
  EXPECT_EQ(seen, (decltype(seen){{"GPU Throughput files/s", {121000}},
                                  {"step_time s", {1.5}},
                                  {"Speed rows/s", {1.2e6}},
                                  {"Disk rate MB/s", {12}},
                                  {"Throughput img/s", {101, 103, 105}}}));
}

TEST(Log, FiguresAndBarsBeforeANameAreNoPartOfIt) {
  const auto names_of = [](const std::string& text) {
    std::vector<std::string> names;
    for (const LogFigure& figure : parse_log(text).figures) names.push_back(figure.name);
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_of("INFO Train step 1/4000 loss=0.71 lr=1.0e-04 time=18.2s"), (Names{"time"}));
  EXPECT_EQ(names_of("wait: 2.5 s GPU time: 3 s"), (Names{"wait", "GPU time"}));
  EXPECT_EQ(names_of("3D conv time: 3 s"), (Names{"D conv time"}));
  EXPECT_EQ(names_of("Epoch 0: 100%|##| 196/196 [07:37<00:00,  0.43it/s, train/loss=4.61]"), Names{});
}

TEST(Log, APipeIsRefusedAtOnce) {
  const std::string path = testing::TempDir() + "/log.pipe";
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW((void)read_log(path, nullptr, 1 << 20), Error);
  std::filesystem::remove(path);
}

TEST(Log, LogsAreComparedFigureByFigure) {
  const std::vector<LogFacts> logs = {parse_log("Disk I/O: 11.5s\nGPU Throughput: 77000 files/s\nGPU Usage: 2.9%"),
                                      parse_log("Disk I/O: 29.6s\nGPU Throughput: 121000 files/s\nGPU Usage: 4.9%")};
  const std::vector<ComparedFigure> all = compare_logs(logs);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].best, 0u);
  EXPECT_NEAR(all[0].apart, 29.6 / 11.5, 1e-9);
  EXPECT_EQ(all[1].best, 1u);
  EXPECT_EQ(all[2].best, std::nullopt);  // whether more is better, a share does not tell
}

TEST(Log, APatternOfTheUsersOwnNamesItsGroups) {
  const LogPattern pattern(R"(TS\((?<step>\d+)\) (?P<step_ms>[\d.]+) q=(?<queue>\d+)(?:x)?)");
  const LogFacts log = parse_log("TS(1) 250.0 q=3\nother 9.9s/it\nTS(2) 260.0 q=5\n", &pattern);
  EXPECT_NEAR(*log.step_s, 0.26, 1e-9);
  EXPECT_EQ(log.seen_steps, 2u);
  EXPECT_EQ(log.matched, 2u);
  ASSERT_EQ(log.figures.size(), 1u);
  EXPECT_EQ(log.figures[0].name, "queue");
  EXPECT_EQ(log.figures[0].values, (std::vector<double>{3, 5}));
  EXPECT_THROW(LogPattern("step ([0-9]+)"), Error);   // no name
  EXPECT_THROW(LogPattern("(?<step_s>[0-9"), Error);  // no regular expression
  EXPECT_THROW(LogPattern("(?<step_s"), Error);
  EXPECT_FALSE(LogPattern(R"([(]?<(?<rate>\d+))").tells_step());  // a bracket inside a class opens no group
}

TEST(Log, APatternWhoseGroupIsAlmostAKnownOneIsRefused) {
  for (const char* name : {"steps_s", "Step_s", "step_m", "step", "steps"}) {
    const std::string text = std::string("(?<") + name + ">[0-9]+)";
    const bool is_known = std::string(name) == "step";
    try {
      const LogPattern pattern(text);
      EXPECT_TRUE(is_known) << name;
    } catch (const Error& error) {
      EXPECT_FALSE(is_known) << error.what();
      EXPECT_NE(std::string(error.what()).find("the nearest name with a meaning is `step"), std::string::npos);
    }
  }
  EXPECT_NO_THROW(LogPattern("(?<queue>[0-9]+)"));
}

TEST(Log, ColoursAreNoPartOfALine) {
  const LogFacts log =
      parse_log("\x1B[32mTrain step\x1B[0m 7 took \x1B[1m17.9\x1B[0m seconds\n\x1B[31mGPU\x1B[0m: 0.5s\n");
  EXPECT_NEAR(log.step_s.value_or(-1), 17.9, 1e-9);
  ASSERT_EQ(log.figures.size(), 1u);
  EXPECT_EQ(log.figures[0].name, "GPU");
}

}  // namespace
}  // namespace stoker::measure
