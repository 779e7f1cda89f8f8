#include "stoker/plan/what_if.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::plan {
namespace {

// One worker of ours that takes a millisecond a sample on a machine of four cores.
const Stages kPrepBound{.batch_size = 32, .workers = 1, .cores = 4, .fetch_s = 20e-6, .prep_s = 1e-3, .cpu_s = 1.05e-3};
// Case C: a torch worker takes 16 s a patch, the accelerator 1.5 s.
const Stages kPatches{
    .batch_size = 1, .workers = 1, .cores = 12, .fetch_in_workers = true, .prep_s = 16, .compute_s = 1.5};

TEST(WhatIf, MoreWorkersHelpUntilTheCoresAreFull) {
  EXPECT_NEAR(with_workers(kPrepBound, 2).gain, 2, 0.05);
  const WhatIf many = with_workers(kPrepBound, 16);
  EXPECT_EQ(many.predicted.limit, Limit::cores);
  EXPECT_NEAR(many.gain, 4 / 1.05, 0.1);
}

TEST(WhatIf, ALargerBatchDoesNotHelpALoader) {
  EXPECT_NEAR(with_batch(kPatches, 2).gain, 1, 0.01);
  EXPECT_GT(with_workers(kPatches, 12).gain, 9);
  EXPECT_LT(with_workers(kPatches, 12).gain, 12.5);
  EXPECT_EQ(with_workers(kPatches, 12).predicted.limit, Limit::compute);
}

TEST(WhatIf, IsPutOnTheMeasuredRate) {
  WhatIf workers = with_workers(kPrepBound, 2);
  set_base(workers, 600);  // the model says 1,000
  EXPECT_NEAR(workers.predicted.per_s, 1200, 30);
  EXPECT_NEAR(workers.gain, 2, 0.05);
}

TEST(WhatIf, NeverExceedsWhatTheStepAllows) {
  for (const double base : {300.0, 1000.0, 3000.0}) {  // less and more than the model says
    WhatIf slow_step = with_compute(kPrepBound, 1.0 / 160);
    set_base(slow_step, base);
    EXPECT_NEAR(slow_step.predicted.per_s, 160, 1) << base;
    EXPECT_DOUBLE_EQ(slow_step.gain * base, slow_step.predicted.per_s);
  }
  WhatIf workers = with_workers(kPatches, 12);
  set_base(workers, 0.1);
  EXPECT_LE(workers.predicted.per_s, 1 / 1.5);
}

TEST(WhatIf, RamTakesFetchAwayAndNeedsTheRoom) {
  const Stages fetching{
      .batch_size = 256, .workers = 2, .cores = 4, .fetch_s = 100e-6, .prep_s = 20e-6, .cpu_s = 110e-6};
  const Setting setting{.sample_bytes = 7000, .dataset_bytes = 1e9, .memory_bytes = 2e9};
  const WhatIf ram = with_storage(fetching, setting, Access::ram);
  EXPECT_EQ(predict(fetching).limit, Limit::fetch);
  EXPECT_GT(ram.gain, 4);
  EXPECT_EQ(ram.most_bytes, 1e9);
  EXPECT_FALSE(with_storage(fetching, {.dataset_bytes = 4e9, .memory_bytes = 2e9}, Access::ram).feasible);
}

TEST(WhatIf, APackSavesOpeningFilesAndARawOneDecoding) {
  const Stages now{.batch_size = 256, .workers = 2, .cores = 4, .fetch_s = 30e-6, .prep_s = 100e-6, .cpu_s = 130e-6};
  const Setting setting{.sample_bytes = 7000, .decoded_bytes = 32000, .dataset_bytes = 1e8};
  EXPECT_LT(with_pack(now, setting, false).stages.fetch_s, 6e-6);
  EXPECT_EQ(with_pack(now, setting, false).stages.prep_s, now.prep_s);
  EXPECT_LT(with_pack(now, setting, true).stages.prep_s, 10e-6);
  EXPECT_GT(with_pack(now, setting, true).gain, 5);
}

TEST(WhatIf, ARawPackIsNoChoiceForRandomTransforms) {
  const WhatIf what = with_pack(kPrepBound, {.sample_bytes = 7000, .decoded_bytes = 32000, .is_random = true}, true);
  EXPECT_FALSE(what.feasible);
  EXPECT_NEAR(what.gain, 1, 1e-9);
}

TEST(WhatIf, ACacheOfHalfTheDataDoublesWhatTheStorageGives) {
  const Stages now{.batch_size = 32, .workers = 8, .prep_s = 1e-4, .storage_per_s = 1000};
  EXPECT_NEAR(with_cache(now, {.dataset_bytes = 10e9}, 5e9).gain, 2, 0.01);
  EXPECT_GT(with_cache(now, {.dataset_bytes = 10e9}, 10e9).gain, 20);
}

TEST(WhatIf, RanksShareTheStorageAndTheCores) {
  const Stages now{.batch_size = 32, .workers = 2, .cores = 4, .prep_s = 1e-3, .storage_per_s = 3000};
  EXPECT_NEAR(predict(now).per_s, 2000, 30);
  const WhatIf two = with_ranks(now, 2);
  EXPECT_EQ(two.predicted.limit, Limit::storage);
  EXPECT_LT(two.predicted.per_s, 3001);
}

TEST(WhatIf, TheListIsSortedAndNamesTheFewestWorkersThatAreEnough) {
  const std::vector<WhatIf> all = what_ifs(kPatches, {.decodes = false});
  ASSERT_FALSE(all.empty());
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_GE(all[i - 1].gain, all[i].gain);
  EXPECT_EQ(all.front().name, "num_workers=12");
  const std::vector<WhatIf> few =
      what_ifs({.workers = 1, .cores = 64, .prep_s = 1e-3, .compute_s = 0.4e-3}, {.decodes = false});
  EXPECT_TRUE(few.front().name == "num_workers=3" || few.front().name == "num_workers=4") << few.front().name;
}

TEST(WhatIf, AFasterDecoderGivesWhatWasMeasured) {
  for (const bool in_workers : {false, true}) {
    const Stages now{.batch_size = 32, .workers = 1, .cores = 4, .fetch_in_workers = in_workers, .prep_s = 1e-3};
    const std::vector<WhatIf> all = what_ifs(now, {.decodes_jpeg = true});
    const auto faster =
        std::find_if(all.begin(), all.end(), [](const WhatIf& one) { return one.kind == Change::faster_decode; });
    ASSERT_NE(faster, all.end());
    EXPECT_NEAR(faster->gain, 1.3, 0.02);
    EXPECT_EQ(faster->evidence, Evidence::ratio);
  }
}

TEST(WhatIf, AFasterDecoderIsOfferedForJpegFilesOfOurLoaderOnly) {
  const Stages now{.batch_size = 32, .workers = 1, .cores = 4, .prep_s = 1e-3};
  for (const Setting& setting : {Setting{}, Setting{.decodes_jpeg = true, .is_ours = false}}) {
    for (const WhatIf& one : what_ifs(now, setting)) EXPECT_NE(one.kind, Change::faster_decode) << one.name;
  }
}

TEST(WhatIf, OfAnotherLoaderNameNoKnobOfOurs) {
  const Stages now{
      .batch_size = 32, .workers = 1, .cores = 4, .fetch_in_workers = true, .fetch_s = 1e-3, .prep_s = 1e-3};
  for (const WhatIf& one : what_ifs(now, {.is_ours = false})) EXPECT_NE(one.knob, "storage") << one.name;
}

TEST(WhatIf, OnACrowdedMachineCountsOnAFairShareOfTheCores) {
  // A worker that needs 1 ms has half a core, so it takes 2.
  Stages crowded{.batch_size = 32, .workers = 1, .cores = 2, .fetch_s = 50e-6, .prep_s = 2e-3, .cpu_s = 1.05e-3};
  take_out_rivals(crowded, 0.5);
  EXPECT_NEAR(crowded.prep_s, 1e-3, 1e-6);
  EXPECT_NEAR(crowded.rivals, 2, 0.01);
  EXPECT_NEAR(predict(crowded).per_s, 500, 25);
  EXPECT_NEAR(with_workers(crowded, 2).predicted.per_s, 650, 40);  // a third of two cores
  EXPECT_LT(with_cores(crowded, 1).predicted.per_s, 340);
  Stages quiet = crowded;
  quiet.rivals = 0;
  EXPECT_GT(with_workers(quiet, 2).predicted.per_s, 1800);
}

TEST(WhatIf, OnACrowdedMachineOnlyTheSlowestStageWaitsForCores) {
  Stages crowded{
      .batch_size = 1024, .workers = 1, .io_threads = 2, .cores = 2, .fetch_s = 20e-6, .prep_s = 3e-6, .cpu_s = 8e-6};
  take_out_rivals(crowded, 0.7);
  EXPECT_NEAR(crowded.fetch_s, 5e-6, 1e-9);
  EXPECT_EQ(crowded.prep_s, 3e-6);
}

TEST(WhatIf, IsAskedByName) {
  EXPECT_NEAR(asked(kPrepBound, {}, "num_workers=2").gain, 2, 0.05);
  EXPECT_NEAR(asked(kPrepBound, {}, "prep=2").gain, 2, 0.05);
  EXPECT_NEAR(asked(kPrepBound, {}, "step_ms=64").predicted.per_s, 500, 5);  // 32 samples in 64 ms
  EXPECT_NEAR(asked(with_workers(kPrepBound, 4).stages, {}, "cores=1").gain, 0.25, 0.02);
  EXPECT_EQ(asked(kPrepBound, {}, "storage=mmap").name, "storage=mmap");
  EXPECT_EQ(asked(kPrepBound, {.warm = true, .is_file_per_sample = true}, "storage=mmap").gain, 1);  // files are read
  Stages in_memory = kPrepBound;
  in_memory.fetch_s = 0.6e-6, in_memory.prep_s = 1e-6, in_memory.cpu_s = 1.6e-6;
  for (const char* text : {"storage=mmap", "storage=buffered"})
    EXPECT_LT(asked(in_memory, {.sample_bytes = 7000, .access = Access::ram}, text).gain, 0.5) << text;
  EXPECT_TRUE(asked(kPrepBound, {}, "pack=raw").needs_pack);
  for (const char* text : {"workers=2", "num_workers", "num_workers=x", "num_workers=-1", "num_workers=2.5",
                           "num_workers=1e8", "batch_size=1e7", "ranks=0.5", "storage=tape", "pack=zip", ""}) {
    EXPECT_THROW(asked(kPrepBound, {}, text), Error) << text;
  }
}

TEST(ScaleOut, FindsWhereTheStorageIsFull) {
  const Stages node{.workers = 8, .cores = 8, .prep_s = 1e-3, .compute_s = 1e-3, .storage_per_s = 4000};
  const double nodes[] = {1, 2, 4, 8};
  const std::vector<ScaleOut> all = scale_out(node, nodes);
  EXPECT_NEAR(all[0].share, 1, 1e-9);
  EXPECT_NEAR(all[3].per_s, 4000, 1e-6);
  EXPECT_LT(all[3].share, 0.6);
  EXPECT_NEAR(*saturating_nodes(node), 4, 0.1);
  EXPECT_FALSE(saturating_nodes({.workers = 1, .prep_s = 1}));
}

TEST(Epochs, OfCaseESpend341SecondsOfFetchInEpoch0Only) {
  const EpochSplit split = split_epochs(457.0 * 0.43 * 256, 0.43 * 256, 457.0 * 0.43 * 256 / 116, 8);
  EXPECT_NEAR(split.fetch_stall_s, 341, 1);
  EXPECT_NEAR(split.local_copy_first, 3.9, 0.1);
  EXPECT_EQ(split.local_copy_later, 1);
  EXPECT_NEAR(split_epochs(50000, 110, 410, 8).later_per_worker, 51, 0.5);
}

}  // namespace
}  // namespace stoker::plan
