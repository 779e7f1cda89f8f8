#include "stoker/plan/wishes.h"

#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::plan {
namespace {

PlanInput input_of_one_run() {
  PlanInput input;
  input.runs.emplace_back();
  input.runs[0].name = "one";
  return input;
}

template <class Wishes>
std::string refused(const Wishes& wishes, PlanInput input = input_of_one_run()) {
  try {
    add_wishes(wishes, input);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(JobWishes, EpochsAndTheirSizeGiveTheImages) {
  PlanInput input = input_of_one_run();
  add_wishes(JobWishes{.epochs = 90, .epoch_images = 1000, .dataset_bytes = 5e6}, input);
  EXPECT_EQ(input.job.images, 90'000);
  EXPECT_EQ(input.runs[0].limits.dataset_bytes, 5e6);
  EXPECT_EQ(input.runs[0].setting.dataset_bytes, 5e6);
}

TEST(JobWishes, ImagesAndEpochsGiveTheSizeOfAnEpoch) {
  PlanInput input = input_of_one_run();
  add_wishes(JobWishes{.images = 90'000, .epochs = 90}, input);
  EXPECT_EQ(input.job.epoch_images, 1000.0);
}

TEST(JobWishes, ThatContradictEachOtherAreRefused) {
  EXPECT_EQ(refused(JobWishes{.images = 1000, .epochs = 9, .epoch_images = 1000}),
            "`images=1000` and `epochs=9` of 1,000 samples contradict each other");
  EXPECT_EQ(refused(JobWishes{.images = 9000, .epochs = 9, .epoch_images = 1000}), "");
}

TEST(JobWishes, ThatSayTooLittleAreRefusedAndNameTheOption) {
  EXPECT_EQ(refused(JobWishes{}), "cannot plan: how much is to be trained is not known");
  EXPECT_EQ(refused(JobWishes{.needs_no_job = true}), "");
  EXPECT_EQ(refused(JobWishes{.epochs = 3}), "`epochs` says nothing without the size of an epoch");
  EXPECT_EQ(refused(JobWishes{.images = 1, .budget_days = 0}), "`budget` is no time at all");
  EXPECT_EQ(refused(JobWishes{.images = 1, .checkpoint_every_s = 0}), "`checkpoint_every` is a time above 0");
  EXPECT_EQ(refused(JobWishes{.images = 1, .validation_s = 5}),
            "`validation_time` is per epoch, and the size of an epoch is not known");
}

TEST(JobWishes, EpochsAloneLookAtTheDataOfTheRuns) {
  PlanInput input = input_of_one_run();
  EXPECT_TRUE(data_to_look_at({.epochs = 3}, input).empty());
  input.runs.emplace_back().data = "train";
  EXPECT_EQ(data_to_look_at({.epochs = 3}, input), std::vector<std::string>{"train"});
  EXPECT_TRUE(data_to_look_at({.images = 10, .epochs = 3}, input).empty());
  EXPECT_TRUE(data_to_look_at({}, input).empty());
  input.job.epoch_images = 1000;
  EXPECT_TRUE(data_to_look_at({.epochs = 3}, input).empty());
}

TEST(MachineWishes, AreThoseOfEveryRun) {
  PlanInput input = input_of_one_run();
  input.runs[0].stages.emplace();
  input.runs[0].rows = {tune::Row{.trial = 1, .knobs = {{"num_workers", "2"}}}};
  add_wishes(MachineWishes{.amp = "none", .memory_limit_bytes = 8e9, .cores = 16, .current = {{"num_workers", "1"}}},
             input);
  const PlanRun& run = input.runs[0];
  EXPECT_FALSE(run.training.half);
  EXPECT_EQ(run.limits.memory_bytes, 8e9);
  EXPECT_EQ(run.setting.memory_bytes, 8e9);
  EXPECT_EQ(run.stages->cores, 16);
  EXPECT_EQ(run.current.at("num_workers"), "1");
}

TEST(MachineWishes, OfAnotherNumberOfModelsOrAnotherWordAreRefused) {
  EXPECT_EQ(refused(MachineWishes{.models = {"vit:large", "vit:giant"}}), "2 models for 1 runs");
  EXPECT_EQ(refused(MachineWishes{.amp = "int8"}), "`amp` is bf16, fp16 or none, not `int8`");
}

TEST(MachineWishes, OfNothingAtAllAreRefused) {
  EXPECT_EQ(refused(MachineWishes{.device_memory_bytes = 0}), "`device_memory` is 0, which no machine has");
  EXPECT_EQ(refused(MachineWishes{.memory_limit_bytes = 0}), "`memory_limit` is 0, which no machine has");
  EXPECT_EQ(refused(MachineWishes{.shm_bytes = 0}), "`shm` is 0, which no machine has");
  EXPECT_EQ(refused(MachineWishes{.disk_bytes_per_s = 0}), "`disk_rate` is 0, which no machine has");
}

TEST(MachineWishes, OfAKnobThatNoRowHasAreRefused) {
  PlanInput input = input_of_one_run();
  input.runs[0].rows = {tune::Row{.trial = 1, .knobs = {{"num_workers", "2"}}}};
  EXPECT_EQ(refused(MachineWishes{.current = {{"num_workers", "1"}, {"nope", "1"}}}, input),
            "`current` names `nope`, and no row that is planned from has such a knob");
  EXPECT_EQ(refused(MachineWishes{.current = {{"num_workers", "1"}}}, input), "");
}

TEST(WhatIfs, NeedALedger) {
  PlanInput input = input_of_one_run();
  EXPECT_THROW(require_stages(input), Error);
  input.runs[0].stages.emplace();
  require_stages(input);
}

}  // namespace
}  // namespace stoker::plan
