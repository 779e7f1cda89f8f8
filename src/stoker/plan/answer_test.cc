// The five cases (tests/data), planned without a process: the figures that a replay must reproduce.
#include "stoker/plan/answer.h"

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/plan/answer_json.h"
#include "stoker/plan/case.h"
#include "stoker/plan/command.h"
#include "stoker/plan/ledger.h"

namespace stoker::plan {
namespace {

std::string text_of(const std::string& name) {
  std::ifstream in(STOKER_TEST_DATA "/" + name);
  return {std::istreambuf_iterator<char>(in), {}};
}

PlanAnswer plan_case(const std::string& name) {
  return make_plan(parse_case(text_of(name), name), {});
}

const PlannedRun& run_named(const PlanAnswer& answer, const std::string& name) {
  for (const PlannedRun& run : answer.runs) {
    if (run.input.name == name) return run;
  }
  throw Error(ErrorKind::internal, "no run " + name);
}

tune::RecordedRun recorded(const std::string& name) {
  tune::RecordedRun run{.place = name};
  run.rows = tune::read_results(text_of(name), name).rows;
  return run;
}

TEST(Plan, OfARecordedGridChoosesTheCheapestOfEqualsAndCountsTheFailures) {
  PlanInput input;
  input.job.images = 28.4e6;
  input.runs.push_back(run_of(recorded("case_a.csv")));

  const PlanAnswer answer = make_plan(std::move(input), {});

  const PlannedRun& run = answer.runs.front();
  EXPECT_EQ(run.input.kind, PlanSource::csv);
  EXPECT_EQ(run.configurations.size(), 72u);
  EXPECT_EQ(run.input.choice.ok, 50u);
  EXPECT_EQ(run.configurations[*run.chosen].measured.knobs.at("num_workers"), "8");
  EXPECT_EQ(run.configurations[*run.best].measured.knobs.at("num_workers"), "24");
}

TEST(Plan, OfTwoModelsSaysWhichFitsTheBudget) {
  const PlanAnswer answer = plan_case("case_b.json");

  const PlannedRun &large = run_named(answer, "ViT-Large"), &giant = run_named(answer, "ViT-Giant");
  EXPECT_EQ(&answer.runs[*answer.chosen_run], &large);
  EXPECT_FALSE(answer.is_no);
  EXPECT_NEAR(large.picked()->duration->p50, 14.0, 0.05);
  EXPECT_NEAR(large.picked()->duration->images_per_day.p50, 2.03e6, 0.01e6);
  EXPECT_NEAR(giant.picked()->duration->p50, 60.9, 0.1);
  EXPECT_NEAR(giant.input.vit->parameters(), 1.13e9, 0.01e9);
  EXPECT_NEAR(giant.input.vit->forward_flops() / large.input.vit->forward_flops(), 3.70, 0.01);
}

TEST(Plan, SetsAnOutOfMemoryThatNoFormulaExplainsBesideItsPrediction) {
  const PlanAnswer answer = plan_case("case_b.json");

  bool found = false;
  for (const Compared& one : run_named(answer, "ViT-Giant").device->points) {
    if (!one.point.out_of_memory) continue;
    found = true;
    EXPECT_TRUE(one.unexplained);
    EXPECT_LT(one.predicted_bytes, 40e9);
  }
  EXPECT_TRUE(found);
}

TEST(Plan, OfAStarvingVolumeJobAdvisesWorkersAndNotALargerBatch) {
  const PlanAnswer answer = plan_case("case_c.json");

  const PlannedRun& run = answer.runs.front();
  EXPECT_NEAR(run.picked()->duration->p50, 26.7, 0.05);
  EXPECT_EQ(run.options.front().knob, "num_workers");
  for (const Option& option : run.options) {
    if (option.knob == "batch_size") {
      EXPECT_FALSE(option.worth);
    }
  }
}

TEST(Plan, OfASlowFirstEpochSaysWhatALocalCopyCannotGive) {
  const PlanAnswer answer = plan_case("case_e.json");

  const EpochSplit& split = *answer.runs.front().epochs;
  EXPECT_GT(split.local_copy_first, 2);
  EXPECT_NEAR(split.local_copy_later, 1, 0.2);
}

TEST(Plan, AsJsonHasItsSchemaAndTheKindOfItsSource) {
  const Json json = to_json(plan_case("case_b.json"));

  EXPECT_EQ(json.at("schema"), "stoker.plan/1");
  EXPECT_EQ(json.at("runs")[0].at("kind"), "case");
  EXPECT_EQ(json.at("runs")[0].at("failures").at("oom_device"), 1);
}

TEST(Plan, ThatWasWrittenIsReadAgain) {
  for (const char* name : {"case_b.json", "case_c.json", "case_d.json", "case_e.json"}) {
    const PlanAnswer answer = plan_case(name), again = parse_plan(to_json(answer), "plan.json");

    EXPECT_EQ(again.headline, answer.headline);
    EXPECT_EQ(again.chosen_run, answer.chosen_run);
    ASSERT_EQ(again.runs.size(), answer.runs.size());
    for (std::size_t i = 0; i < again.runs.size(); ++i) {
      const PlannedRun &now = again.runs[i], &then = answer.runs[i];
      ASSERT_EQ(now.options.size(), then.options.size());
      for (std::size_t j = 0; j < now.options.size(); ++j) {
        EXPECT_EQ(now.options[j].risk, then.options[j].risk);
        EXPECT_EQ(now.options[j].gain.p90, then.options[j].gain.p90);
      }
      ASSERT_EQ(now.what_ifs.size(), then.what_ifs.size());
      for (std::size_t j = 0; j < now.what_ifs.size(); ++j)
        EXPECT_EQ(now.what_ifs[j].what.predicted.limit, then.what_ifs[j].what.predicted.limit);
      EXPECT_EQ(now.configurations.size(), then.configurations.size());
      EXPECT_EQ(now.device.has_value(), then.device.has_value());
      EXPECT_EQ(spell_all(now.notes, &Text::in_python), spell_all(then.notes, &Text::in_python));
    }
  }
}

TEST(Plan, RefusesAnAbsurdRateByItsRow) {
  PlanInput input;
  input.runs.push_back(
      run_of({.place = "rows.csv", .rows = {{.trial = 7, .knobs = {{"num_workers", "1"}}, .images_per_s = 1e12}}}));
  try {
    make_plan(std::move(input), {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.message()).find("row 7: images_per_s is 1e+12"), std::string::npos);
  }
}

TEST(Plan, WithoutRowsIsRefused) {
  EXPECT_THROW(run_of({.place = "rows.csv"}), Error);
}

TEST(Case, NamesAKeyThatIsMisspelt) {
  try {
    parse_case(R"({"schema": "stoker.case/1", "job": {"imges": 1}, "runs": []})", "case.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.message()).find("did you mean `images`?"), std::string::npos);
  }
}

TEST(Case, HasALearningRateAboveZero) {
  try {
    parse_case(R"({"schema": "stoker.case/1", "job": {"images": 1, "lr": 0}, "runs": []})", "case.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.message()).find("job.lr is 0: a learning rate is above 0"), std::string::npos)
        << error.message();
  }
}

TEST(Case, PredictsWorkersFromTheCoresOfItsMachine) {
  const PlanInput input = parse_case(R"({"schema": "stoker.case/1", "job": {"epochs": 90, "epoch_images": 1281167},
    "machine": {"cores": 16}, "runs": [{"name": "r", "current": {"batch_size": 256, "num_workers": 8}, "rows": [
    {"knobs": {"batch_size": 256, "num_workers": 8}, "images_per_s": 820, "compute_ms": 180, "verdict": "prep_bound"},
    {"knobs": {"batch_size": 256, "num_workers": 4}, "images_per_s": 415, "compute_ms": 180, "verdict": "prep_bound"}
    ]}]})",
                                     "case.json");
  EXPECT_EQ(input.runs.at(0).cores, 16);
  const PlanAnswer answer = make_plan(input, {});
  const auto& options = answer.runs.at(0).options;
  EXPECT_TRUE(std::any_of(options.begin(), options.end(),
                          [](const auto& option) { return option.name.starts_with("num_workers="); }));
}

TEST(Ledger, IsARunOfOneRow) {
  const Json json = Json::parse(R"({"schema": "stoker.steps/1", "samples_per_s": 200, "ledger": {
    "batch_size": 8, "num_workers": 2, "io_threads": 1, "cores": 4, "fetch_s": 0.001, "prep_s": 0.01, "handoff_s": 0,
    "compute_s": 0, "cpu_s": 0.01, "sample_bytes": 1000, "decoded_bytes": 4000, "dataset_bytes": 1e6, "cache": "warm",
    "storage": "mmap", "decodes": true, "file_per_sample": true, "fetch_share": 0}})",
                                "ledger.json");

  const PlanRun run = run_of_ledger(json, "ledger.json");

  EXPECT_EQ(run.kind, PlanSource::ledger);
  EXPECT_EQ(run.setting.access, Access::mmap);
  EXPECT_EQ(run.stages->workers, 2);
  ASSERT_EQ(run.rows.size(), 1u);
  EXPECT_EQ(run.rows[0].images_per_s, 200);
}

TEST(Ledger, OfAStoreOffersTheCommandThatCopiesIt) {
  const Json json = Json::parse(R"({"schema": "stoker.steps/1", "address": "s3://bucket/my set/train/",
    "samples_per_s": 200, "ledger": {
    "batch_size": 8, "num_workers": 2, "io_threads": 1, "cores": 4, "fetch_s": 0.001, "prep_s": 0.001, "handoff_s": 0,
    "compute_s": 0, "cpu_s": 0.001, "sample_bytes": 1000, "decoded_bytes": 4000, "dataset_bytes": 1e6, "cache": "unknown",
    "storage": "buffered", "decodes": true, "file_per_sample": true, "fetch_share": 0.8}})",
                                "ledger.json");
  const PlanRun run = run_of_ledger(json, "ledger.json");
  EXPECT_EQ(run.setting.access, Access::remote);
  EXPECT_EQ(run.setting.disk_bytes_per_s, 0);
  EXPECT_GT(with_local_copy(*run.stages, run.setting).gain, 2);
  Option option;
  option.kind = Change::local_copy;
  EXPECT_EQ(command_for(run, option, {}).text, "stoker stage 's3://bucket/my set/train/' staged/train");
}

}  // namespace
}  // namespace stoker::plan
