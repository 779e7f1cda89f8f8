#include "stoker/plan/verify.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace stoker::plan {
namespace {

using Words = std::vector<std::string>;

bool has(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// A run with one worker that was measured at 100 samples a second, and these what-ifs.
PlannedRun planned(std::vector<WhatIf> what_ifs) {
  PlannedRun run;
  run.input.address = "data";
  run.input.current = {{"num_workers", "1"}, {"batch_size", "8"}};
  run.input.stages = Stages{.batch_size = 8, .workers = 1, .cores = 4, .prep_s = 0.01};
  for (WhatIf& what : what_ifs) run.what_ifs.push_back({.what = std::move(what)});
  return run;
}

WhatIf two_workers() {
  return with_workers({.batch_size = 8, .workers = 1, .cores = 4, .prep_s = 0.01}, 2);
}

Tried at(double per_s) {
  return {.row = {.images_per_s = per_s, .ci_low = 0.99 * per_s, .ci_high = 1.01 * per_s}};
}

Tried failed(const std::string& error) {
  return {.row = {.status = tune::Status::user_error, .error = error}};
}

TEST(Verify, RunsEachWhatIfInTurnWithThePresentSettings) {
  PlannedRun run = planned({two_workers()});
  std::vector<Words> ran;
  verify(run, {.rounds = 2, .run = [&](const Words& words) {
                 ran.push_back(words);
                 return at(has(words, "2") ? 190 : 100);
               }});

  ASSERT_EQ(ran.size(), 4u);
  EXPECT_EQ(ran[0][0], "load");
  EXPECT_FALSE(has(ran[0], "2"));
  EXPECT_TRUE(has(ran[1], "2"));
  EXPECT_DOUBLE_EQ(*run.verified_per_s, 100);
  EXPECT_DOUBLE_EQ(*run.what_ifs[0].gain, 1.9);
  EXPECT_NEAR(*run.what_ifs[0].error, (200 - 1.01 * 190) / 190, 1e-9);
  EXPECT_FALSE(run.what_ifs[0].noise);
}

TEST(Verify, CallsASmallGainNoiseWhereRunsOfOneSettingDifferMore) {
  PlannedRun run = planned({two_workers()});
  double next = 100;
  verify(run, {.rounds = 2, .run = [&](const Words& words) { return has(words, "2") ? at(130) : at(next += 40); }});

  EXPECT_TRUE(run.what_ifs[0].noise);
  ASSERT_EQ(run.notes.size(), 1u);
}

TEST(Verify, SaysWhyAWhatIfWasNotRun) {
  WhatIf pack = with_pack({.batch_size = 8, .workers = 1, .cores = 4, .fetch_s = 0.01, .prep_s = 0.01}, {}, false);
  pack.feasible = true;
  PlannedRun run = planned({two_workers(), pack});
  verify(run, {.rounds = 2,
               .run = [&](const Words& words) { return has(words, "2") ? failed("no such knob") : at(100); },
               .pack = [](const std::string&, Change) { return TriedPack{.error = "disk full"}; }});

  EXPECT_EQ(run.what_ifs[0].not_run, "it failed: no such knob");
  EXPECT_EQ(run.what_ifs[1].not_run, "it cannot be packed so: disk full");
  EXPECT_FALSE(run.what_ifs[0].measured_per_s);
}

TEST(Verify, KeepsTheSettingsOfTheRunAndLetsFurtherFlagsReplaceThem) {
  const PlannedRun run = planned({});
  EXPECT_EQ(load_words(run.input, "data", {"--num-workers", "4"}, 20),
            (Words{"load", "data", "--quiet", "--json", "--batch-size", "8", "--shuffle", "--num-workers", "4",
                   "--bench-steps", "20", "--warmup-steps", "8"}));
}

}  // namespace
}  // namespace stoker::plan
