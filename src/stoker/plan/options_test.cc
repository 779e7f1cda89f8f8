#include "stoker/plan/options.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace stoker::plan {
namespace {

const Option* find(const std::vector<Option>& all, std::string_view name) {
  const auto at = std::find_if(all.begin(), all.end(), [&](const Option& one) { return one.name == name; });
  return at == all.end() ? nullptr : &*at;
}

// Case C: one worker of twelve cores, 77 of 80 GB on the device.
Situation patches() {
  Situation situation;
  situation.knobs = {{"batch_size", "1"}, {"num_workers", "1"}, {"prefetch_factor", "1"}};
  const Rate rate[] = {{1 / 18.0}};
  situation.rate = spread_of(rate);
  situation.job.images = 32 * 4000;
  situation.stages =
      Stages{.batch_size = 1, .workers = 1, .cores = 12, .fetch_in_workers = true, .prep_s = 16, .compute_s = 1.5};
  situation.host = {.workers = 1, .worker_bytes = 7e9};
  situation.limits = {.memory_bytes = 170e9};
  situation.device_limit_bytes = 80e9;
  situation.device_now_bytes = 77e9;
  situation.command = [](const Option& option, const std::vector<std::string>&) {
    return Command{"try " + option.knob + "=" + option.value};
  };
  return situation;
}

TEST(Options, DoNotPromiseWhatWasMeasuredAndIsSlower) {
  Situation situation = patches();
  Configuration slower;
  slower.knobs = situation.knobs;
  slower.knobs["num_workers"] = "12";
  slower.status = tune::Status::ok;
  slower.rates = {{1 / 30.0}};
  const std::vector<Configuration> measured = {slower};
  situation.measured = measured;
  const std::vector<Option> all = options(situation);
  EXPECT_EQ(find(all, "num_workers=12"), nullptr);
  EXPECT_NE(find(all, "num_workers=6"), nullptr);
}

TEST(Options, OfCaseCAreWorkersAndNotTheBatch) {
  const std::vector<Option> all = options(patches());
  EXPECT_EQ(all.front().name, "num_workers=12");
  EXPECT_EQ(all.front().order, 1);
  EXPECT_EQ(all.front().risk, Risk::low);
  EXPECT_NEAR(*all.front().host_bytes, 84e9, 1e6);
  EXPECT_LT(*all.front().days, 3.5);
  EXPECT_EQ(all.front().command, "try num_workers=12");
  const Option* const batch = find(all, "batch_size=2");
  ASSERT_NE(batch, nullptr);
  EXPECT_FALSE(batch->worth);
  EXPECT_EQ(batch->order, 0);
  EXPECT_NE(batch->reason.find("raising the batch cannot help: the loader is the limit"), std::string::npos);
  EXPECT_TRUE(batch->changes_training);
  EXPECT_NEAR(batch->gain.p50, 1, 0.02);
  EXPECT_GT(*batch->device_bytes, 80e9);
}

TEST(Options, ListSeveralStepsOnTheWayWithTheirMemory) {
  const std::vector<Option> all = options(patches());
  const Option *four = find(all, "num_workers=4"), *six = find(all, "num_workers=6");
  ASSERT_TRUE(four && six);
  EXPECT_NEAR(*four->host_bytes, 28e9, 1e6);
  EXPECT_NEAR(*six->host_bytes, 42e9, 1e6);
  EXPECT_LT(four->gain.p50, six->gain.p50);
}

TEST(Options, OfEqualGainNameTheCheaperFirstAndNoMemoryThatNobodyMeasured) {
  Situation situation = patches();  // loads in the training thread, on two cores; one worker is enough
  situation.knobs = {{"batch_size", "32"}, {"num_workers", "0"}};
  situation.stages = Stages{.batch_size = 32,
                            .workers = 0,
                            .cores = 2,
                            .fetch_in_workers = true,
                            .prep_s = 1e-3,
                            .compute_s = 3e-3,
                            .cpu_s = 7e-3};
  situation.host = {.main_bytes = 1e9};
  const std::vector<Option> all = options(situation);
  ASSERT_EQ(all.front().name, "num_workers=1");
  EXPECT_EQ(all.front().order, 1);
  EXPECT_EQ(all.front().host_bytes, std::nullopt) << "what a worker takes was never measured";
  EXPECT_EQ(all.front().risk, Risk::medium);
  const Option* const two = find(all, "num_workers=2");
  EXPECT_TRUE(two == nullptr || !two->worth) << "as fast, and dearer";
}

TEST(Options, PredictOfWorkersWhatMeasureDoes) {
  const meter::LoaderFigures figures{.batch_size = 8, .num_workers = 0, .prep_ms = 30, .compute_ms = 60, .cores = 2};
  const Stages now = meter::stages_of(figures);
  EXPECT_EQ(with_workers(now, 1).gain, meter::gain_of_workers(now, 1));
}

TEST(Options, ThatWouldNotFitAreOfHighRiskAndComeLate) {
  Situation situation = patches();
  situation.limits.memory_bytes = 64e9;
  const std::vector<Option> all = options(situation);
  EXPECT_EQ(find(all, "num_workers=12")->risk, Risk::high);
  EXPECT_EQ(all.front().name, "num_workers=6");
}

TEST(Options, OfAComputeBoundJobDoNotOfferWorkers) {
  Situation situation = patches();
  situation.stages =
      Stages{.batch_size = 64, .workers = 4, .cores = 12, .fetch_in_workers = true, .prep_s = 1e-3, .compute_s = 0.04};
  const auto offered = options(situation);
  ASSERT_FALSE(offered.empty());
  for (const Option& option : offered) {
    EXPECT_FALSE(option.worth && option.name.starts_with("num_workers")) << option.name;
  }
}

TEST(Options, TakeWhatWasMeasuredBeforeWhatIsPredicted) {
  Situation situation = patches();
  Configuration measured;
  measured.knobs = {{"batch_size", "1"}, {"num_workers", "4"}, {"prefetch_factor", "1"}};
  measured.rates = {{4 / 18.0, 0.001, 0.01}};
  const Configuration rows[] = {measured};
  situation.measured = rows;
  const std::vector<Option> all = options(situation);
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](const Option& one) { return one.name == "num_workers=4"; }), 1);
  EXPECT_EQ(find(all, "num_workers=4")->evidence, Evidence::measured);
  EXPECT_EQ(find(all, "num_workers=6")->evidence, Evidence::model);
}

TEST(Options, SayThatSeveralKnobsAtOnceCannotBeToldApart) {
  Situation situation = patches();
  Configuration measured;
  measured.knobs = {{"batch_size", "1"}, {"num_workers", "4"}, {"prefetch_factor", "4"}};
  measured.rates = {{5 / 18.0, 0.001, 0.01}};
  const Configuration rows[] = {measured};
  situation.measured = rows;
  const std::vector<Option> all = options(situation);
  const Option* const both = find(all, "num_workers=4 prefetch_factor=4");
  ASSERT_NE(both, nullptr);
  EXPECT_EQ(both->risk, Risk::medium);
  EXPECT_NE(both->reason.find("2 knobs at once"), std::string::npos);
}

TEST(Options, ThatARunContradictsAreOfHighRisk) {
  Situation situation = patches();
  Configuration measured;
  measured.knobs = {{"batch_size", "1"}, {"num_workers", "12"}, {"prefetch_factor", "4"}};
  measured.rates = {{0.4 / 18.0, 0.0001, 0.01}};
  const Configuration rows[] = {measured};
  situation.measured = rows;
  const std::vector<Option> all = options(situation);
  EXPECT_EQ(find(all, "num_workers=12")->risk, Risk::high);
  EXPECT_NE(find(all, "num_workers=12")->reason.find("was slower (0.40x)"), std::string::npos);
  EXPECT_EQ(all.front().name, "num_workers=6");
}

TEST(Options, ThatRunAsTheyAreComeBeforeThoseThatNeedAnEdit) {
  Situation situation = patches();
  const WhatIf faster = with_faster_prep(*situation.stages, 100, "much faster");
  situation.what_ifs = {&faster, 1};
  EXPECT_EQ(options(situation).front().name, "much faster");
  situation.command = [](const Option& option, const std::vector<std::string>&) {
    return Command{"try " + option.name, option.knob.empty()};
  };
  const std::vector<Option> all = options(situation);
  EXPECT_FALSE(all.front().needs_edit) << all.front().name;
  EXPECT_TRUE(find(all, "much faster")->needs_edit);
}

TEST(Options, ThatChangeTheTrainingSaySo) {
  Situation situation = patches();
  situation.vit = parse_vit("vit:dim=1024,depth=24,heads=16,patch=14,img=224");
  situation.stages =
      Stages{.batch_size = 64, .workers = 8, .cores = 12, .fetch_in_workers = true, .prep_s = 1e-3, .compute_s = 0.04};
  const std::vector<Option> all = options(situation);
  const Option* const smaller = find(all, "img_size=154");
  ASSERT_NE(smaller, nullptr);
  EXPECT_TRUE(smaller->changes_training);
  EXPECT_EQ(smaller->evidence, Evidence::ratio);
  EXPECT_GT(smaller->gain.p50, 1.8);
}

TEST(Options, OfABatchThatDoesNotFitAreStepsThatAccumulate) {
  Situation situation = patches();  // 77 of 80 GB with one patch
  situation.learning_rate = 1e-3;
  const std::vector<Option> all = options(situation);
  const Option* const more = find(all, "accumulate_steps=2");
  ASSERT_NE(more, nullptr);
  EXPECT_TRUE(more->worth);
  EXPECT_NEAR(more->gain.p50, 1, 1e-9) << "for the effective batch, not for speed";
  EXPECT_NEAR(*more->device_bytes, 77e9, 1) << "the memory of the present batch";
  EXPECT_NE(more->training.find("effective batch of 2 instead of 1: learning rate 0.002 (linear) or 0.00141"),
            std::string::npos)
      << more->training;
  EXPECT_GT(more->order, 1) << "after what makes it faster";
  situation.device_now_bytes = 20e9;
  EXPECT_EQ(find(options(situation), "accumulate_steps=2"), nullptr) << "the larger batch fits";
  situation.effective_batch = 4;
  EXPECT_NE(find(options(situation), "accumulate_steps=4"), nullptr) << "asked for";
}

TEST(Options, NeverOfferABatchThatRanOutOfMemory) {
  Situation situation = patches();
  situation.device_now_bytes = 20e9;  // by the sum of memory it would fit
  situation.too_large_batch = 2;
  const std::vector<Option> all = options(situation);
  const Option* const batch = find(all, "batch_size=2");
  ASSERT_NE(batch, nullptr);
  EXPECT_FALSE(batch->worth);
  EXPECT_EQ(batch->reason, "a batch of 2 ran out of device memory");
  EXPECT_NE(find(all, "accumulate_steps=2"), nullptr);
}

TEST(Options, OfWorkersThatLiveOnCountTheirMemoryAndTheirStart) {
  Situation situation = patches();
  situation.job.epoch_images = 4000;
  situation.knobs["persistent_workers"] = "false";
  const std::vector<Option> long_epochs = options(situation);
  const Option* const on = find(long_epochs, "persistent_workers=true");
  ASSERT_NE(on, nullptr);
  EXPECT_FALSE(on->worth);
  EXPECT_NE(on->reason.find("starting workers takes seconds, and an epoch 20 h"), std::string::npos) << on->reason;
  situation.start_share = 0.2;  // measured: short epochs
  const std::vector<Option> short_epochs = options(situation);
  const Option* const worth = find(short_epochs, "persistent_workers=true");
  ASSERT_NE(worth, nullptr);
  EXPECT_TRUE(worth->worth);
  EXPECT_NEAR(worth->gain.p50, 1.25, 1e-9);
  EXPECT_NEAR(*worth->host_bytes, 7e9, 1e8);
}

TEST(Options, OfWorkersThatGrowIsToStartThemAgain) {
  Situation situation = patches();
  situation.job.epoch_images = 4000;
  situation.knobs["persistent_workers"] = "true";
  const std::vector<Option> steady = options(situation);
  EXPECT_FALSE(find(steady, "persistent_workers=false")->worth);
  situation.host.worker_growth_per_s = 163e9 / (32 * 72000.0);  // full when the run ends
  const std::vector<Option> all = options(situation);
  const Option* const off = find(all, "persistent_workers=false");
  ASSERT_NE(off, nullptr);
  EXPECT_TRUE(off->worth) << off->reason;
  EXPECT_LT(*off->host_bytes, 15e9);
  EXPECT_NE(off->reason.find("workers grow to"), std::string::npos) << off->reason;
}

// Case E: ResNet-50, decoding is the limit.
Situation photos() {
  Situation situation = patches();
  situation.knobs = {{"batch_size", "256"}, {"num_workers", "8"}};
  const Rate rate[] = {{410}};
  situation.rate = spread_of(rate);
  situation.stages = Stages{.batch_size = 256, .workers = 8, .fetch_in_workers = true, .prep_s = 0.0195};
  situation.device_limit_bytes = 23e9;
  situation.device_now_bytes = 12.9e9;
  situation.img_size = 224;
  situation.learning_rate = 0.5;
  return situation;
}

TEST(Options, AMeasuredRowOfAnotherEffectiveBatchNamesItsLearningRate) {
  Situation situation = photos();
  Configuration faster;
  faster.knobs = situation.knobs;
  faster.knobs["batch_size"] = "512";
  faster.status = tune::Status::ok;
  faster.rates = {{820}};
  const std::vector<Configuration> measured = {faster};
  situation.measured = measured;
  const std::vector<Option> all = options(situation);
  const Option* const option = find(all, "batch_size=512");
  ASSERT_NE(option, nullptr);
  EXPECT_EQ(option->evidence, Evidence::measured);
  EXPECT_NE(option->training.find("1 (linear) or 0.707 (square root) instead of 0.5"), std::string::npos)
      << option->training;
}

TEST(Options, OfAMachineWithoutKnownCoresAreTwiceTheWorkersAtMost) {
  Situation situation = photos();
  ASSERT_EQ(situation.stages->cores, 0);
  const std::vector<Option> all = options(situation);
  const Option* const workers = find(all, "num_workers=16");
  ASSERT_NE(workers, nullptr);
  EXPECT_TRUE(workers->worth);
  EXPECT_EQ(workers->order, 1);
  EXPECT_EQ(workers->gain.p10, 1) << "the cores may be full";
  EXPECT_NEAR(workers->gain.p50, 2, 1e-9);
  EXPECT_EQ(workers->risk, Risk::medium);
  EXPECT_NE(workers->reason.find("the most that it gives"), std::string::npos) << workers->reason;
  situation.stages->prep_s = 1e-5;
  situation.stages->compute_s = 1 / 410.0;
  EXPECT_EQ(find(options(situation), "num_workers=16"), nullptr) << "the loader keeps up";
}

TEST(Options, OfAnyModelAreABatchOf384WithItsRateAndSmallerImages) {
  const std::vector<Option> all = options(photos());
  const Option* const batch = find(all, "batch_size=384");
  ASSERT_NE(batch, nullptr);
  EXPECT_FALSE(batch->worth) << "decoding is the limit";
  EXPECT_NE(batch->training.find("0.75 (linear) or 0.612 (square root) instead of 0.5"), std::string::npos);
  EXPECT_NEAR(*batch->device_bytes, 1.5 * 12.9e9, 1);
  const Option* const image = find(all, "img_size=160");
  ASSERT_NE(image, nullptr);
  EXPECT_FALSE(image->worth);
  EXPECT_NE(image->reason.find("smaller crops of the same files cost it as much"), std::string::npos);
  Situation bound = photos();
  bound.stages->prep_s = 1e-4;
  bound.stages->compute_s = 1 / 410.0;
  const std::vector<Option> faster = options(bound);
  const Option* const worth = find(faster, "img_size=160");
  ASSERT_NE(worth, nullptr);
  EXPECT_TRUE(worth->worth);
  EXPECT_NEAR(worth->gain.p50, 224.0 * 224 / (160 * 160), 1e-6);
  EXPECT_TRUE(worth->changes_training);
}

}  // namespace
}  // namespace stoker::plan
