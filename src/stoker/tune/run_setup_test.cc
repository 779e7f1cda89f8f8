#include "stoker/tune/run_setup.h"

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::tune {
namespace {

RunConfig config_of_command() {
  return {.target = {.command = {"train", "{num_workers}"}},
          .knobs = {{"num_workers", {"1", "2"}}},
          .search = "grid",
          .warmup_steps = 3,
          .bench_steps = 7};
}

std::string refusal_of(const RunConfig& config, const RunLimits& limits = {}) {
  try {
    check_run(config, limits);
    (void)make_search(config, search_options(config, limits));
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(RunSetup, RefusesWhatOnlyTheFirstTrialWouldFind) {
  RunConfig config = config_of_command();
  EXPECT_EQ(refusal_of(config), "");
  config.target = {.address = "/nowhere/data"};
  EXPECT_EQ(refusal_of(config), "cannot open `/nowhere/data`: No such file or directory");
  config.target = {.address = "s3://bucket/data"};
  EXPECT_EQ(refusal_of(config), "");
  config.target = {.function = "/nowhere/train.py:build"};
  EXPECT_EQ(refusal_of(config), "cannot open `/nowhere/train.py`: No such file or directory");
  config = config_of_command();
  config.rate_regex = "no group";
  EXPECT_NE(refusal_of(config), "");
  config.rate_regex = "([0-9]+)";
  config.log_pattern = "(?<step_s>[0-9.]+)";
  EXPECT_EQ(refusal_of(config), "rate_regex and log_pattern exclude each other");
}

TEST(RunSetup, RefusesWordsThatNameNoSearchAndNoBatch) {
  RunConfig config = config_of_command();
  config.search = "best";
  EXPECT_EQ(refusal_of(config), "`search` is auto or grid, not `best`");
  config = config_of_command();
  config.effective_batch = "many";
  EXPECT_EQ(refusal_of(config), "`effective_batch` is a number, not `many`");
}

TEST(RunSetup, ATrialMustBeAbleToEndBeforeItsDeadline) {
  RunConfig config = config_of_command();
  config.bench_time = "20s";
  EXPECT_NE(refusal_of(config, {.deadline = std::chrono::seconds(10)}), "");
  EXPECT_EQ(refusal_of(config, {.deadline = std::chrono::seconds(30)}), "");
  EXPECT_EQ(refusal_of(config, {.deadline = std::chrono::seconds(0)}), "") << "0 is none";
}

TEST(RunSetup, ATrialGetsTheStepsOfTheConfigAndTheLimits) {
  const TrialOptions trial =
      trial_options(config_of_command(), {.memory_bytes = 4096}, {{"num_workers", "2"}}, "trial", "stoker");
  EXPECT_EQ(trial.command, (std::vector<std::string>{"train", "2"}));
  EXPECT_EQ(trial.steps_from, StepsFrom::hook);
  EXPECT_EQ(trial.warmup_steps, 3u);
  EXPECT_EQ(trial.bench_steps, 7u);
  EXPECT_EQ(trial.memory_limit, 4096u);
}

TEST(RunSetup, TellsTheTimeOnlyFromEarlierTrials) {
  const SearchOptions options = search_options(config_of_command(), {});
  const auto search = grid_search(options);
  Forecast told = forecast(options, *search, {});
  EXPECT_EQ(told.points.size(), 2u);
  EXPECT_EQ(told.trials_at_most, 2u);
  EXPECT_FALSE(told.seconds_each);
  const std::vector<Row> earlier = {{.trial = 1, .knobs = {{"num_workers", "1"}}, .trial_seconds = 4}};
  told = forecast(options, *search, earlier);
  EXPECT_EQ(told.trials_at_most, 1u);
  EXPECT_EQ(told.seconds_each, 4.0);
}

TEST(RunSetup, NamesPointsThatRanAtOneTimeAndFailedAtAnother) {
  const Row ok{.trial = 1, .knobs = {{"num_workers", "1"}}, .images_per_s = 100};
  Row failed = ok;
  failed.status = Status::hang;
  failed.images_per_s.reset();
  const RunConfig config = config_of_command();
  EXPECT_TRUE(notes_after(config, {}, std::vector<Row>{ok}).empty());
  const std::vector<Text> notes = notes_after(config, {}, std::vector<Row>{ok, failed});
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].in_python(), "a point ran at one time and failed at another, and is not chosen: num_workers=1");
}

TEST(RunSetup, SaysThatABatchSizeOrAPrintedRateIsNotTuned) {
  RunConfig config = config_of_command();
  config.target = {.address = "data", .passed = {"--batch-size", "32"}};
  ASSERT_EQ(notes_after(config, {}, {}).size(), 1u);
  config = config_of_command();
  config.steps_from = "output";
  EXPECT_EQ(notes_before(config, config.grid()).size(), 1u);
}

}  // namespace
}  // namespace stoker::tune
