#include "stoker/tune/wishes.h"

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/os/file.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::tune {
namespace {

std::string refused(const std::function<void()>& ask) {
  try {
    ask();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

std::string refused(const TargetWishes& wishes) {
  return refused([&] { make_target(wishes); });
}

TEST(TargetWishes, DataAloneIsForOurLoader) {
  const Target target = make_target({.operands = {"data"}, .options = {{"transform", "rrc:32"}, {"color", "gray"}}});
  EXPECT_TRUE(target.is_ours());
  EXPECT_EQ(target.address, "data");
  EXPECT_EQ(target.passed, (std::vector<std::string>{"--transform", "rrc:32", "--image-color", "gray"}));
}

TEST(TargetWishes, AFunctionGetsItsDataAndSettings) {
  const Target target = make_target({.operands = {"train.py:build", "data"},
                                     .python = "python3",
                                     .options = {{"seed", "7"}},
                                     .with = {"img_size=224"}});
  EXPECT_EQ(target.function, "train.py:build");
  EXPECT_EQ(target.address, "data");
  EXPECT_EQ(target.settings, (Point{{"seed", "7"}, {"img_size", "224"}}));
}

TEST(TargetWishes, OptionsOfAnotherTargetAreRefusedByName) {
  EXPECT_EQ(refused({.operands = {"train.py:build"}, .options = {{"storage", "ram"}}}),
            "`storage` is for our own loader, not for `train.py:build`");
  EXPECT_EQ(refused({.command = {"train"}, .options = {{"seed", "7"}}}),
            "`seed` is for our own loader and for functions, not for `train`");
  EXPECT_EQ(refused({.operands = {"data"}, .config_file = "a.yaml"}), "`config` is for commands and functions");
  EXPECT_EQ(refused({.operands = {"data"}, .with = {"img_size=224"}}),
            "`with=\"img_size=224\"` does not say what a function is given");
}

TEST(TargetWishes, OfTwoTargetsOrOfNoneAreRefused) {
  EXPECT_EQ(refused({.operands = {"data"}, .command = {"train"}}), "`data` and a command behind `--` are two targets");
  EXPECT_EQ(refused({.operands = {"train.py"}}), "`train.py` is a program, not data");
  EXPECT_EQ(refused({.operands = {"data", "more"}}), "`data` does not name a function of a module or file");
  EXPECT_NE(refused(TargetWishes{}), "");
}

TEST(TargetWishes, AValueThatOurLoaderDoesNotTakeIsRefused) {
  EXPECT_NE(refused({.operands = {"data"}, .options = {{"dtype", "int3"}}}), "");
}

TEST(GridWishes, KnobsOfAConfigFileGoToTheTarget) {
  const os::TempFolder folder;
  const std::string file = folder.path() + "/train.yaml";
  os::write_file(file, "training:\n  workers: 1\n");
  Target target{.command = {"train", "{config}"}, .config_file = file};
  const Grid grid = make_grid({.config_knobs = {"training.workers=1,4"}}, target);
  EXPECT_EQ(grid.size(), 2u);
  EXPECT_EQ(target.config_keys, std::vector<std::string>{"training.workers"});
}

TEST(GridWishes, ThatCannotBeTunedAreRefused) {
  Target target{.command = {"train", "{x}"}};
  EXPECT_EQ(refused([&] { make_grid({.config_knobs = {"x=1"}}, target); }),
            "`set` changes keys of a file, but there is none");
  EXPECT_EQ(refused([&] { make_grid({.knobs = {" "}}, target); }), "the grid is empty");
  Target function{.function = "train.py:build"};
  EXPECT_EQ(refused([&] { make_grid({}, function); }), "there is no knob to tune");
  EXPECT_EQ(make_grid({}, target).size(), 0u) << "the DataLoader of a job tells what to try";
}

TEST(GridWishes, ArgumentsOfADataLoaderAndLiteralsOfTheSourceNeedNoPlaceInTheCommand) {
  Target target{.command = {"python", "train.py", "{lr}"}};
  const Grid grid =
      make_grid({.knobs = {"lr=1,2 num_workers=0,2"}, .config_knobs = {"src/builder.py:cpu_max_workers=4,8"}}, target);
  EXPECT_EQ(grid.size(), 8u);
  EXPECT_EQ(target.loader_knobs, std::vector<std::string>{"num_workers"});
  EXPECT_EQ(target.source_keys, std::vector<std::string>{"src/builder.py:cpu_max_workers"});
  Target ours{.address = "data"};
  EXPECT_NE(refused([&] { make_grid({.config_knobs = {"builder.py:x=1"}}, ours); }).find("there is no command"),
            std::string::npos);
}

TEST(GridWishes, HowOurLoaderShufflesIsAKnobOfOneValue) {
  Target target{.address = "data"};
  const Grid grid = make_grid({.knobs = {"num_workers=1,2"}, .shuffle = "blocks"}, target);
  ASSERT_NE(grid.find("shuffle"), nullptr);
  EXPECT_EQ(grid.size(), 2u);
}

TEST(NamesFunction, ModulesAndFilesWithAFunctionAndNothingElse) {
  for (const char* text : {"train.py:build", "a/b.py:build", "stoker.targets:vit", "m:f"})
    EXPECT_TRUE(names_function(text)) << text;
  for (const char* text : {"data", "data/train", "s3://bucket/x", "train.py", "a-b:f", "m:", "m:1f"})
    EXPECT_FALSE(names_function(text)) << text;
}

}  // namespace
}  // namespace stoker::tune
