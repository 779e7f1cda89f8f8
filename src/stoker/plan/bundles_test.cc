#include "stoker/plan/bundles.h"

#include <gtest/gtest.h>

namespace stoker::plan {
namespace {

Option option(const std::string& name, const WhatIf& what, Risk risk, double host_bytes = 0) {
  Option one{.name = name, .gain = {what.gain, what.gain, what.gain, 0, true}, .risk = risk, .command = "try " + name};
  one.stages = what.stages;
  if (host_bytes > 0) one.host_bytes = host_bytes;
  return one;
}

// Fetching and preparing are both slower than the step: 10 ms, 8 ms, and 2 ms a sample.
Situation store() {
  Situation situation;
  situation.stages = Stages{
      .batch_size = 8, .workers = 1, .io_threads = 1, .cores = 8, .fetch_s = 10e-3, .prep_s = 8e-3, .compute_s = 2e-3};
  const Rate rate[] = {{100}};
  situation.rate = spread_of(rate);
  situation.job.images = 3.6e6;
  situation.job.epoch_images = 360e3;
  situation.host = {.main_bytes = 1e9, .workers = 1, .worker_bytes = 1e9};
  situation.limits = {.memory_bytes = 16e9};
  return situation;
}

WhatIf local_copy(const Situation& situation) {
  WhatIf what{.name = "local copy", .stages = *situation.stages};
  what.stages.fetch_s = 1e-4;
  what.gain = predict(what.stages).per_s / predict(*situation.stages).per_s;
  return what;
}

TEST(Bundles, CombineChangesOfDifferentStagesAndPredictTheWholePipeline) {
  const Situation situation = store();
  const std::vector<Option> options = {option("local copy", local_copy(situation), Risk::low),
                                       option("num_workers=8", with_workers(*situation.stages, 8), Risk::low, 9e9)};
  const std::vector<Bundle> all = bundles(situation, options);
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.back().names, (std::vector<std::string>{"local copy", "num_workers=8"}));
  // The copy leaves preparing as the limit (1.25x); with the workers the step is it: 5x, and not more.
  EXPECT_NEAR(all.back().gain.p50, 5, 0.1);
  EXPECT_EQ(all.back().limit, "compute");
  EXPECT_NEAR(*all.back().epoch_hours, 360e3 / 500 / 3600, 5e-3);
  EXPECT_NEAR(*all.back().host_bytes, 9e9, 1e6);
  EXPECT_EQ(all.back().commands, (std::vector<std::string>{"try local copy", "try num_workers=8"}));
  EXPECT_EQ(all.back().risk, Risk::medium) << "several changes at once";
}

TEST(Bundles, NeverMultiplyGainsThatShareALimit) {
  const Situation situation = store();
  Stages cheap = *situation.stages, wide = *situation.stages;
  cheap.prep_s = 4e-3;
  wide = with_workers(wide, 2).stages;
  EXPECT_EQ(combined(*situation.stages, cheap, wide), std::nullopt) << "both act on what is prepared in a second";
  const std::vector<Option> options = {
      option("faster prep", with_faster_prep(*situation.stages, 2, "faster"), Risk::low),
      option("num_workers=2", with_workers(*situation.stages, 2), Risk::low)};
  for (const Bundle& bundle : bundles(situation, options)) EXPECT_EQ(bundle.members.size(), 1u);
}

TEST(Bundles, GoFromCarefulToBold) {
  Situation situation = store();
  situation.stages->fetch_s = 0;
  situation.stages->cores = 64;
  situation.stages->compute_s = 1e-5;
  const auto workers = [&](double count, Risk risk) {
    return option(with_workers(*situation.stages, count).name, with_workers(*situation.stages, count), risk,
                  count * 1e9);
  };
  Stages small = *situation.stages;
  small.compute_s = 0.5e-5;
  WhatIf smaller{.name = "img_size=160", .stages = small};
  smaller.gain = 1.5;
  Option image = option("img_size=160", smaller, Risk::high);
  image.changes_training = true;
  image.training = "another training";
  const std::vector<Option> options = {workers(8, Risk::medium), workers(2, Risk::low), workers(4, Risk::low), image};
  const std::vector<Bundle> all = bundles(situation, options);
  ASSERT_EQ(all.size(), 2u) << "the bold one is no faster: the step is no limit";
  EXPECT_EQ(all[0].label, 'A');
  EXPECT_EQ(all[0].names, std::vector<std::string>{"num_workers=2"});
  EXPECT_EQ(all[0].title, "careful");
  EXPECT_EQ(all[1].names, std::vector<std::string>{"num_workers=8"});
  situation.stages->compute_s = 2e-3;  // now the step is the limit of the second
  std::vector<Option> again = {workers(8, Risk::medium), workers(2, Risk::low), image};
  again[2].stages = *situation.stages;
  again[2].stages->compute_s = 1e-3;
  const std::vector<Bundle> three = bundles(situation, again);
  ASSERT_EQ(three.size(), 3u);
  EXPECT_EQ(three[2].names, (std::vector<std::string>{"num_workers=8", "img_size=160"}));
  EXPECT_EQ(three[2].risk, Risk::high);
  EXPECT_EQ(three[2].training, "img_size=160: another training");
}

TEST(Bundles, KeepTheirLettersWhereOneIsLeftOut) {
  const Situation situation = store();
  const std::vector<Option> options = {option("local copy", local_copy(situation), Risk::medium, 2e9)};
  const std::vector<Bundle> all = bundles(situation, options);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].label, 'B');
  EXPECT_EQ(all[0].title, "balanced");
}

TEST(Bundles, LeaveOutWhatDoesNotFit) {
  const Situation situation = store();
  std::vector<Option> options = {option("local copy", local_copy(situation), Risk::high, 20e9)};
  EXPECT_TRUE(bundles(situation, options).empty()) << "20 GB of 16";
  options[0].host_bytes.reset();
  options[0].feasible = false;
  EXPECT_TRUE(bundles(situation, options).empty());
  EXPECT_TRUE(bundles(Situation{}, options).empty()) << "no ledger";
}

}  // namespace
}  // namespace stoker::plan
