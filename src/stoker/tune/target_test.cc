#include "stoker/tune/target.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/os/file.h"
#include "stoker/os/read_file.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::tune {
namespace {

using Command = std::vector<std::string>;

Json config() {
  return {{"shuffle", true},      {"warmup_steps", 5},     {"bench_steps", 20},
          {"steps_from", "auto"}, {"rate_regex", nullptr}, {"grid", {{"num_workers", {"1", "2"}}}}};
}

TEST(Target, OurLoaderIsRunWithTheKnobsAsFlags) {
  Target target{.address = "data", .passed = {"--transform", "rrc:224"}};
  EXPECT_EQ(command_for(target, {{"num_workers", "2"}}, "trial", config(), "stoker"),
            (Command{"stoker", "load", "data", "--quiet", "--transform", "rrc:224", "--num-workers", "2", "--shuffle",
                     "--warmup-steps", "5", "--bench-steps", "20"}));
}

TEST(Target, ACommandGetsValuesWhereItNamesKnobs) {
  const Target target{.command = {"python", "train.py", "-j{num_workers}", "{trial}/out"}};
  EXPECT_EQ(command_for(target, {{"num_workers", "2"}}, "trial", config(), "stoker"),
            (Command{"python", "train.py", "-j2", "trial/out"}));
}

TEST(Target, ATrialGetsACopyOfTheConfigFileWithItsKeysChanged) {
  const os::TempFolder folder;
  const std::string file = folder.file("train.yaml", "# mine\ntraining:\n  workers: 1\n");
  const Target target{.command = {"train", "{config}"}, .config_file = file, .config_keys = {"training.workers"}};
  os::make_folders(folder.path() + "/trial");

  const Command command =
      command_for(target, {{"training.workers", "4"}}, folder.path() + "/trial", config(), "stoker");

  EXPECT_EQ(command.back(), folder.path() + "/trial/train.yaml");
  EXPECT_EQ(os::read_text(command.back()), "# mine\ntraining:\n  workers: 4\n");
  EXPECT_EQ(os::read_text(file), "# mine\ntraining:\n  workers: 1\n");
}

TEST(Target, SurvivesConfigJson) {
  Target target{.address = "data", .function = "train:build", .python = "python3", .settings = {{"img_size", "224"}}};
  Json json = config();
  write_target(target, json);

  const Target read = read_target(json);

  EXPECT_EQ(read.function, "train:build");
  EXPECT_EQ(read.settings, target.settings);
  EXPECT_FALSE(read.is_ours());
  EXPECT_EQ(steps_from(json, read), StepsFrom::reports);
  EXPECT_EQ(read_grid(json).size(), 2u);
}

TEST(Target, AKnobThatNothingTakesIsRefused) {
  Grid grid;
  add_knobs(grid, "num_workers=1,2 batch_size=8");
  EXPECT_EQ(grid.size(), 2u);
  EXPECT_THROW(check_command_knobs(grid, {.command = {"train", "-j{num_workers}"}}), Error);
  check_command_knobs(grid, {.command = {"train", "-j{num_workers}", "{batch_size}"}});
}

TEST(Target, AWordInBracesThatIsNoKnobIsNamed) {
  Grid grid;
  add_knobs(grid, "num_workers=1");
  const Target target{.command = {"train", "{num_workers}", "{epochs}", "{trial}"}};
  ASSERT_EQ(notes_of_braces(target, grid).size(), 1u);
}

TEST(Target, WordsBecomeWhatPythonCallsThem) {
  EXPECT_EQ(value_of("32"), 32);
  EXPECT_EQ(value_of("True"), true);
  EXPECT_TRUE(value_of("None").is_null());
  EXPECT_EQ(value_of("[1]"), "[1]");
}

}  // namespace
}  // namespace stoker::tune
