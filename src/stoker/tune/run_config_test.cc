#include "stoker/tune/run_config.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/os/file.h"
#include "stoker/os/read_file.h"
#include "stoker/os/temp_folder_test.h"
#include "stoker/tune/config_json.h"

namespace stoker::tune {
namespace {

using Command = std::vector<std::string>;

RunConfig config_for(Target target) {
  return {.target = std::move(target),
          .knobs = {{"num_workers", {"1", "2"}}},
          .shuffle = true,
          .search = "grid",
          .warmup_steps = 5,
          .bench_steps = 20};
}

TEST(RunConfig, OurLoaderIsRunWithTheKnobsAsFlags) {
  const RunConfig config = config_for({.address = "data", .passed = {"--transform", "rrc:224"}});
  EXPECT_EQ(command_for(config, {{"num_workers", "2"}}, "trial", "stoker"),
            (Command{"stoker", "load", "data", "--quiet", "--transform", "rrc:224", "--num-workers", "2", "--shuffle",
                     "--warmup-steps", "5", "--bench-steps", "20"}));
}

TEST(RunConfig, ACommandGetsValuesWhereItNamesKnobs) {
  const RunConfig config = config_for({.command = {"python", "train.py", "-j{num_workers}", "{trial}/out"}});
  EXPECT_EQ(command_for(config, {{"num_workers", "2"}}, "trial", "stoker"),
            (Command{"python", "train.py", "-j2", "trial/out"}));
}

TEST(RunConfig, ATrialGetsACopyOfTheConfigFileWithItsKeysChanged) {
  const os::TempFolder folder;
  const std::string file = folder.file("train.yaml", "# mine\ntraining:\n  workers: 1\n");
  const RunConfig config =
      config_for({.command = {"train", "{config}"}, .config_file = file, .config_keys = {"training.workers"}});
  os::make_folders(folder.path() + "/trial");

  const Command command = command_for(config, {{"training.workers", "4"}}, folder.path() + "/trial", "stoker");

  EXPECT_EQ(command.back(), folder.path() + "/trial/train.yaml");
  EXPECT_EQ(os::read_text(command.back()), "# mine\ntraining:\n  workers: 4\n");
  EXPECT_EQ(os::read_text(file), "# mine\ntraining:\n  workers: 1\n");
}

TEST(RunConfig, SurvivesConfigJson) {
  RunConfig config = config_for(
      {.address = "data", .function = "train:build", .python = "python3", .settings = {{"img_size", "224"}}});
  config.narrowing.subset = 100;
  config.narrowing.class_list = {"cat"};
  config.inflation_factor = 10;
  config.bench_time = "2s";
  config.environment = Environment{.cores = 2, .memory_bytes = 4096};
  config.data = DataFacts{.samples = 7, .fingerprint = "00ff"};

  const Json json = to_json(config);
  const RunConfig read = parse_config(json);

  EXPECT_EQ(to_json(read), json);
  EXPECT_EQ(json.at("img_size"), 224);
  EXPECT_EQ(read.target.settings, config.target.settings);
  EXPECT_FALSE(read.target.is_ours());
  EXPECT_TRUE(read.is_of_tune());
  EXPECT_EQ(read.where_steps_are(), StepsFrom::reports);
  EXPECT_EQ(read.grid().size(), 2u);
  EXPECT_EQ(read.narrowing.subset, 100u);
  EXPECT_EQ(read.bench_duration(), std::chrono::seconds(2));
  EXPECT_EQ(read.environment->memory_bytes, 4096u);
}

TEST(RunConfig, NobodyKnowsWhetherACommandShuffles) {
  const auto shuffles = [](const RunConfig& config) {
    const RunConfig read = parse_config(to_json(config));
    return std::any_of(read.facts.begin(), read.facts.end(), [](const auto& fact) { return fact.name == "shuffle"; });
  };
  EXPECT_TRUE(shuffles(config_for({.address = "data"})));
  EXPECT_FALSE(shuffles(config_for({.command = {"python", "train.py"}})));
}

TEST(RunConfig, AFileOfOthersIsReadAsFarAsItIsKnown) {
  const RunConfig config = parse_config({{"lr", 0.1}, {"command", "train"}, {"grid", {{"workers", 4}}}, {"search", 1}});
  EXPECT_FALSE(config.is_of_tune());
  EXPECT_TRUE(config.target.command.empty());
  ASSERT_EQ(config.knobs.size(), 1u);
  EXPECT_EQ(config.knobs[0].values, Command{"4"});
  ASSERT_FALSE(config.facts.empty());
  EXPECT_EQ(config.facts[0].name, "lr");
  EXPECT_EQ(parse_config(Json::array({1})).facts.size(), 0u);
}

TEST(RunConfig, TheFlagOfAnEarlierVersionIsRenamed) {
  const RunConfig config = parse_config({{"flags", {"--color", "gray"}}});
  EXPECT_EQ(config.target.passed, (Command{"--image-color", "gray"}));
}

TEST(RunConfig, OnlyARunOfTuneCanBeResumed) {
  const os::TempFolder folder;
  EXPECT_THROW(read_config(folder.path()), Error);
  os::write_file(folder.path() + "/config.json", "{\"grid\": {}}");
  EXPECT_THROW(read_config(folder.path()), Error);
  os::write_file(folder.path() + "/config.json", to_json(config_for({.address = "data"})).dump());
  EXPECT_EQ(read_config(folder.path()).target.address, "data");
}

TEST(RunConfig, AGridThatStoppedEarlySaysHowFarItCame) {
  RunConfig config = config_for({});
  config.knobs.push_back({"batch_size", {"8", "16"}});
  EXPECT_EQ(unfinished_of(config, 3), "3 of 4 points have a row");
  EXPECT_EQ(unfinished_of(config, 4), "");
  config.search = "auto";
  EXPECT_EQ(unfinished_of(config, 3), "");
}

TEST(RunConfig, WhereStepsAreSeenFollowsFromTheTarget) {
  RunConfig config = config_for({.command = {"train"}});
  EXPECT_EQ(config.where_steps_are(), StepsFrom::hook);
  config.rate_regex = "([0-9]+) it/s";
  EXPECT_EQ(config.where_steps_are(), StepsFrom::output);
  config.rate_regex = "";
  config.log_pattern = "(?<step_s>[0-9.]+)";
  EXPECT_EQ(config.where_steps_are(), StepsFrom::output);
  config.steps_from = "nowhere";
  EXPECT_THROW(config.where_steps_are(), Error);
}

TEST(RunConfig, WordsBecomeWhatPythonCallsThem) {
  EXPECT_EQ(value_of("32"), 32);
  EXPECT_EQ(value_of("True"), true);
  EXPECT_TRUE(value_of("None").is_null());
  EXPECT_EQ(value_of("[1]"), "[1]");
}

TEST(RunConfig, ASwitchOfOurLoaderIsAKnobThatIsGivenOrLeftOut) {
  const RunConfig config = config_for({.address = "data"});
  const auto has = [&](const char* value) {
    const auto words = command_for(config, {{"pin_memory", value}}, "folder", "stoker");
    return std::find(words.begin(), words.end(), "--pin-memory") != words.end();
  };
  EXPECT_TRUE(has("true"));
  EXPECT_FALSE(has("False"));
}

TEST(RunConfig, RecordsTheImageSizeAndTheWindowOfOurLoader) {
  const Json json = to_json(config_for(
      {.address = "data", .passed = {"--transform", "window:level=-700..100:width=300..2000,rrc:224,flip"}}));
  EXPECT_EQ(json["img_size"], 224);
  EXPECT_EQ(json["window"]["level"], Json::array({-700.0, 100.0}));
  EXPECT_EQ(json["window"]["width"], Json::array({300.0, 2000.0}));
  const Json none = to_json(config_for({.address = "data", .passed = {"--transform", "nonsense"}}));
  EXPECT_TRUE(none["img_size"].is_null() && none["window"].is_null());
  EXPECT_EQ(to_json(config_for({.function = "a:b", .settings = {{"img_size", "96"}}}))["img_size"], 96);
}

}  // namespace
}  // namespace stoker::tune
