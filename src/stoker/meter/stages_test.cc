#include "stoker/meter/stages.h"

#include <gtest/gtest.h>

namespace stoker::meter {
namespace {

TEST(Predict, IsTheSlowestStage) {
  const Stages one_worker{
      .batch_size = 32, .workers = 1, .cores = 4, .fetch_s = 20e-6, .prep_s = 1e-3, .cpu_s = 1.05e-3};
  const Predicted predicted = predict(one_worker);
  EXPECT_EQ(predicted.limit, Limit::prep);
  EXPECT_NEAR(predicted.per_s, 1000, 10);
  EXPECT_NEAR(predicted.fetch_per_s, 50'000, 1);
  EXPECT_TRUE(predicted.is_loader_bound());
}

TEST(Predict, LetsEqualStagesHinderOneAnother) {
  const Predicted predicted = predict({.workers = 1, .prep_s = 1e-3, .compute_s = 1e-3});
  EXPECT_LT(predicted.per_s, 960);
  EXPECT_GT(predicted.per_s, 850);
}

TEST(Predict, CountsEverythingInTheTrainingThreadWithoutWorkers) {
  const Predicted predicted =
      predict({.workers = 0, .fetch_in_workers = true, .fetch_s = 1e-3, .prep_s = 2e-3, .compute_s = 1e-3});
  EXPECT_NEAR(predicted.per_s, 250, 1);
}

// The training thread prepares and computes in turn, on two cores.
LoaderFigures without_workers() {
  return {.batch_size = 10, .num_workers = 0, .prep_ms = 20, .compute_ms = 20, .cores = 2};
}

TEST(Workers, OneRunsBesideTheStep) {
  const Stages now = stages_of(without_workers());
  EXPECT_EQ(suggested_workers(now), 2);  // one would be as long as the step, and they hinder each other
  EXPECT_GT(gain_of_workers(now, 1), 1.8);
  EXPECT_LE(gain_of_workers(now, 2), 2);
}

TEST(Workers, GainLessWhereTheStepTakesTheCores) {
  LoaderFigures figures = without_workers();
  figures.compute_cpu_ms = 40;  // both cores: 60 ms of CPU for each batch
  const Stages now = stages_of(figures);
  EXPECT_EQ(suggested_workers(now), 1);
  EXPECT_NEAR(gain_of_workers(now, 1), 40 / 30.0, 0.03);
}

TEST(Workers, OneIsSuggestedThoughOtherProgramsHoldTheCores) {
  LoaderFigures figures = without_workers();  // two busy loops beside it: a thread has two thirds of a core
  figures.prep_ms = 30, figures.delay_ms = 10;
  figures.compute_cpu_ms = 13;
  figures.cores_of_others = cores_taken(2, 0.67, 1.33);
  const Stages now = stages_of(figures);
  EXPECT_EQ(now.free_cores, 2 - 1.33);
  EXPECT_EQ(suggested_workers(now), 1) << "bounded by the cores that are free, and not dropped";
  EXPECT_GT(gain_of_workers(now, 1), 1.15);
  EXPECT_LT(gain_of_workers(now, 1), 1.8);
}

TEST(Workers, AreNoMoreThanTheCoresThatAreFree) {
  LoaderFigures figures{.num_workers = 1, .prep_ms = 30, .compute_ms = 1, .cores = 8};
  EXPECT_EQ(suggested_workers(stages_of(figures)), 8);
  figures.cores_of_others = 5;
  EXPECT_EQ(suggested_workers(stages_of(figures)), 3);
  figures.cores_of_others = cores_taken(8, 1, 5);
  EXPECT_EQ(figures.cores_of_others, 0) << "two cores are idle";
}

TEST(Workers, ThatWaitNeedNoCore) {
  LoaderFigures figures{.num_workers = 1, .fetch_ms = 100, .prep_ms = 2, .compute_ms = 25, .cores = 2};
  EXPECT_GE(suggested_workers(stages_of(figures)), 4);
  figures.delay_ms = 1, figures.cores_of_others = 1.5;
  EXPECT_GE(suggested_workers(stages_of(figures)), 4) << "rivals slow down only what computes";
}

TEST(Workers, AreNotSuggestedForWorkThatIsCheaperThanHandingOverItsResult) {
  LoaderFigures figures{.num_workers = 0, .prep_ms = 0.1, .collate_ms = 0.2, .compute_ms = 1, .cores = 8};
  EXPECT_EQ(suggested_workers(stages_of(figures)), 0);
  figures = {.num_workers = 0, .collate_ms = 7.68, .collate_delay_ms = 7.65, .compute_ms = 60, .cores = 2};
  figures.cores_of_others = 1.9;
  EXPECT_EQ(suggested_workers(stages_of(figures)), 0) << "it was without a core, and so would the hand-off be";
}

TEST(Workers, AreNotSuggestedWhereTheStepIsTheLimit) {
  const LoaderFigures figures{.num_workers = 2, .prep_ms = 10, .compute_ms = 50, .cores = 8};
  EXPECT_EQ(suggested_workers(stages_of(figures)), 0);
  EXPECT_EQ(fewest_workers(stages_of(figures)), 1);
}

}  // namespace
}  // namespace stoker::meter
