#include "stoker/tune/job_loader.h"

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/os/temporary_folder.h"

namespace stoker::tune {
namespace {

JobLook look_with(std::int64_t workers, std::int64_t prefetch = 2) {
  JobLook look;
  look.loader.file = "/job/train.py";
  look.loader.line = 26;
  look.loader.num_workers = workers;
  look.loader.prefetch_factor = workers > 0 ? prefetch : 0;
  look.loader.batch_size = 64;
  return look;
}

std::vector<std::string> values_of(const Grid& grid, const char* knob) {
  const Knob* const found = grid.find(knob);
  return found == nullptr ? std::vector<std::string>{} : found->values;
}

using Values = std::vector<std::string>;

TEST(ProposedGrid, HoldsThePresentSettingsAndThoseAroundThem) {
  const Grid grid = propose_grid(look_with(3, 8), {.cores = 4});
  EXPECT_EQ(values_of(grid, "num_workers"), (Values{"0", "1", "2", "3", "4", "8"}));
  EXPECT_EQ(values_of(grid, "prefetch_factor"), (Values{"2", "4", "8"}));
  EXPECT_EQ(grid.knobs().size(), 2u) << "neither a device nor a second epoch was seen, and batch_size changes training";
  EXPECT_EQ(values_of(propose_grid(look_with(0), {.cores = 2}), "num_workers"), (Values{"0", "1", "2", "4"}));
}

TEST(ProposedGrid, TriesPinnedMemoryWhereThereIsADeviceAndLivingWorkersWhereThereAreEpochs) {
  JobLook look = look_with(2);
  look.has_device = true;
  look.epochs = 3;
  const Grid grid = propose_grid(look, {.cores = 2});
  EXPECT_EQ(values_of(grid, "pin_memory"), (Values{"true", "false"}));
  EXPECT_EQ(values_of(grid, "persistent_workers"), (Values{"true", "false"}));
}

TEST(ProposedGrid, LeavesOutWorkersThatMemoryHasNoRoomFor) {
  JobLook look = look_with(1);
  look.worker_bytes = 1000;
  look.batch_bytes = 10;
  EXPECT_EQ(values_of(propose_grid(look, {.cores = 8, .memory_bytes = 6000}), "num_workers"),
            (Values{"0", "1", "2", "4"}));
  EXPECT_EQ(values_of(propose_grid(look, {.cores = 8, .shm_bytes = 100}), "num_workers"), (Values{"0", "1", "2", "4"}));
  look.loader.num_workers = 16;
  EXPECT_EQ(values_of(propose_grid(look, {.cores = 8, .memory_bytes = 3000}), "num_workers"),
            (Values{"0", "1", "2", "16"}))
      << "what ran fits";
}

TEST(LoaderSettings, AreWhatTheHookReads) {
  const LoaderPlace place{"/job/train.py", "train_loader", 26};
  const Point point = {{"num_workers", "4"}, {"pin_memory", "true"}, {"lr", "0.1"}};
  EXPECT_EQ(settings_json(place, point, {"num_workers", "pin_memory", "prefetch_factor"}).dump(),
            R"({"schema":"stoker.settings/1","loaders":[{"file":"/job/train.py","line":26,"name":"train_loader",)"
            R"("set":{"num_workers":4,"pin_memory":true}}]})");
}

TEST(SourceSettings, AreWhatTheHookReads) {
  EXPECT_EQ(source_json({{"a/b.py:workers", "8"}, {"lr", "1"}, {"c.py:mode", "spawn"}}, {"a/b.py:workers", "c.py:mode"})
                .dump(),
            R"([{"file":"a/b.py","name":"workers","value":8},{"file":"c.py","name":"mode","value":"spawn"}])");
}

TEST(LoaderSettings, ThatChangeAreNamedWithOldAndNewValues) {
  const LoaderPlace place{"/job/train.py", "", 26};
  measure::LoaderFacts facts = look_with(2).loader;
  const Values knobs = {"num_workers", "pin_memory", "prefetch_factor", "multiprocessing_context"};
  const Point before = present_settings(facts, knobs);
  EXPECT_EQ(change_text(place, before, before), "");
  EXPECT_EQ(change_text(place, before,
                        {{"num_workers", "4"},
                         {"pin_memory", "true"},
                         {"prefetch_factor", "2"},
                         {"multiprocessing_context", "spawn"}}),
            "train.py:26: multiprocessing_context None -> \"spawn\", num_workers 2 -> 4, pin_memory False -> True");
}

TEST(LoaderSettings, StandInADiffWhereTheSourceHasThemAsLiterals) {
  const std::string source =
      "import torch\nWORKERS = 2\n\n\n\n\n\n\n\n\nloader = DataLoader(data, num_workers=WORKERS, pin_memory=False,\n"
      "                    prefetch_factor=2)\nfor x in loader:\n    pass\n";
  const std::map<std::string, measure::Literal> literals = {
      {"num_workers", {2, 10, 11}}, {"pin_memory", {11, 58, 63}}, {"prefetch_factor", {12, 36, 37}}};
  const Point before = {{"num_workers", "2"}, {"pin_memory", "false"}, {"prefetch_factor", "2"}};
  EXPECT_EQ(source_diff("train.py", source, literals, before, before), "");
  EXPECT_EQ(
      source_diff("train.py", source, literals, before,
                  {{"num_workers", "4"}, {"pin_memory", "true"}, {"prefetch_factor", "8"}}),
      "--- a/train.py\n+++ b/train.py\n@@ -1,5 +1,5 @@\n import torch\n-WORKERS = 2\n+WORKERS = 4\n \n \n \n"
      "@@ -8,7 +8,7 @@\n \n \n \n-loader = DataLoader(data, num_workers=WORKERS, pin_memory=False,\n"
      "-                    prefetch_factor=2)\n+loader = DataLoader(data, num_workers=WORKERS, pin_memory=True,\n"
      "+                    prefetch_factor=8)\n for x in loader:\n     pass\n");
  EXPECT_EQ(source_diff("train.py", source, {{"num_workers", {99, 0, 1}}}, before, {{"num_workers", "4"}}), "")
      << "the file is another by now";
}

TEST(LoaderSettings, ThatTheSourceDoesNotNameAreMissingInTheDiff) {
  const std::map<std::string, measure::Literal> literals = {{"num_workers", {1, 31, 32}}};
  const Point before = {{"num_workers", "1"}, {"persistent_workers", "false"}, {"prefetch_factor", "2"}};
  EXPECT_EQ(missing_in_source(
                literals, before,
                {{"num_workers", "2"}, {"persistent_workers", "true"}, {"prefetch_factor", "2"}, {"lr", "0.1"}}),
            Values({"persistent_workers=True"}));
  EXPECT_EQ(missing_in_source(literals, before, {{"num_workers", "2"}}), Values());
}

TEST(LookAtJob, SaysWhyAJobCannotBeTuned) {
  const os::TemporaryFolder folder("stoker-test-");
  const auto refusal = [&](const std::vector<std::string>& command) -> std::string {
    try {
      TrialOptions trial;
      trial.command = command;
      trial.folder = folder.path();
      trial.steps_from = StepsFrom::hook;
      (void)look_at_job(trial, "", {});
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  };
  EXPECT_EQ(refusal({"true"}), "cannot tune this job: it used no torch DataLoader that could be measured");
}

}  // namespace
}  // namespace stoker::tune
