#include "stoker/measure/deep.h"

#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::measure {
namespace {

// A step of 10 ms behind a loader that takes 25 ms, of which 20 compute.
DeepRuns slow_loader() {
  DeepRuns runs;
  runs.steps = 100;
  runs.compute_s = runs.compute_again_s = 0.010;
  runs.warm_s = runs.real_s = 0.025;
  runs.cold_s = 0.040;
  runs.cold_left = 0;
  runs.ledger_compute_s = 0.0102;
  runs.ledger_prep_s = 0.0148;
  return runs;
}

TEST(Deep, AgreesWithALedgerThatSaysTheSame) {
  const DeepAnswer answer = compare(slow_loader());
  EXPECT_EQ(answer.doubtful, Doubtful::neither);
  EXPECT_NEAR(answer.wait_s, 0.015, 1e-9);
  EXPECT_NEAR(answer.apart, 0.008, 1e-6);
  EXPECT_EQ(answer.verdict.bound, meter::Bound::prep);
  EXPECT_NEAR(answer.hidden, 0.4, 1e-9);
  EXPECT_TRUE(answer.notes.empty());
}

TEST(Deep, DoubtsTheLedgerThatMissesCompute) {
  DeepRuns runs = slow_loader();
  runs.ledger_compute_s = 0.002;  // the device goes on while the loop waits
  runs.ledger_prep_s = 0.023;
  const DeepAnswer answer = compare(runs);
  EXPECT_EQ(answer.doubtful, Doubtful::ledger);
  EXPECT_EQ(answer.why_doubtful.find("the ledger sees 2.00 ms of compute where the step alone takes 10.00 ms"), 0u);
}

TEST(Deep, DoubtsTheDifferenceWhereTheRunsAreNotTheSame) {
  DeepRuns noisy = slow_loader();
  noisy.compute_again_s = 0.016;
  noisy.ledger_prep_s = 0.0160;
  EXPECT_EQ(compare(noisy).doubtful, Doubtful::difference);
  EXPECT_NE(compare(noisy).why_doubtful.find("not quiet"), std::string::npos);

  DeepRuns crowded = slow_loader();  // the step is slower beside the workers
  crowded.ledger_compute_s = 0.018;
  crowded.ledger_prep_s = 0.007;
  EXPECT_EQ(compare(crowded).doubtful, Doubtful::difference);
  EXPECT_NE(compare(crowded).why_doubtful.find("fewer workers may be faster"), std::string::npos);

  DeepRuns slow_alone = slow_loader();
  slow_alone.compute_s = slow_alone.compute_again_s = 0.030;
  EXPECT_EQ(compare(slow_alone).doubtful, Doubtful::difference);
  EXPECT_EQ(compare(slow_alone).wait_s, 0);
}

TEST(Deep, SaysWhatMayMislead) {
  DeepRuns runs = slow_loader();
  runs.cold_left = 0.5;
  runs.steps = 5;
  const DeepAnswer answer = compare(runs);
  ASSERT_EQ(answer.notes.size(), 2u);
  EXPECT_EQ(answer.notes[0].in_python().find("50 % of the sampled pages stayed"), 0u);
  EXPECT_EQ(answer.notes[1].in_python().find("only 5 steps"), 0u);
}

TEST(Deep, ReadsWhatARunnerWroteAndNamesWhatItCannotRead) {
  const DeepRuns runs = parse_deep(
      R"({"steps":7,"compute_s":0.01,"compute_again_s":0.01,"warm_s":0.02,"cold_s":null,"cold_left":null,"cold_why":"no files",)"
      R"("real_s":0.02,"ledger":{"compute_s":0.01,"fetch_s":0.01,"prep_s":0,"handoff_s":0},"notes":["n"]})",
      "train:make");
  EXPECT_EQ(runs.steps, 7u);
  EXPECT_FALSE(runs.cold_s);
  const auto json = to_json(runs, compare(runs));
  EXPECT_EQ(json["loader_only"]["cold=data"], nullptr);
  EXPECT_EQ(json["verdict"]["bound"], "fetch_bound");
  EXPECT_EQ(json["notes"][1], "no cold run: no files");
  for (const char* bad : {"", "{}", "[1]", R"({"steps":"x"})"}) {
    try {
      parse_deep(bad, "train:make");
      FAIL() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.message().find("cannot read what the difference runs of `train:make` wrote: "), 0u);
    }
  }
}

}  // namespace
}  // namespace stoker::measure
