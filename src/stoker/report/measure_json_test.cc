#include "stoker/report/measure_json.h"

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/os/file.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::report {
namespace {

constexpr const char* kStepsHeader = "rank,loader,role,asked_s,step_ms,compute_ms,ready\n";

Json measured_part(double ms) {
  return {{"share", ms / 100}, {"ms_per_step", ms}};
}

Json measured_answer(double compute, double fetch) {
  Json wait = measured_part(fetch);
  wait["fetch"] = measured_part(fetch);
  const Json total = {{"steps", 100},
                      {"step_ms", compute + fetch},
                      {"compute", measured_part(compute)},
                      {"h2d", nullptr},
                      {"wait", wait}};
  Json answer = {{"schema", "stoker.measure/1"},
                 {"command", {"python", "train.py"}},
                 {"seconds", 10},
                 {"exit_code", 3},
                 {"verdict", {{"bound", "fetch_bound"}, {"share", 0.6}, {"ci_low", 0.5}, {"ci_high", 0.7}}},
                 {"total", total},
                 {"main_loader", 1},
                 {"why", {"its samples wait for bytes"}},
                 {"host", {{"memory", {{"limit_bytes", 4096}}}, {"accelerators", "unknown"}}}};
  answer["loaders"] = Json::array({{{"name", "other"}}, {{"name", "train"}, {"settings", {{"num_workers", 2}}}}});
  return answer;
}

std::string refusal_of(const Json& json) {
  try {
    parse_measured_job(json, "runs/monday");
  } catch (const Error& error) {
    return error.message();
  }
  return "none";
}

TEST(MeasureJson, GivesTheMainLoaderTheSplitAndTheHost) {
  const MeasuredJob job = parse_measured_job(measured_answer(40, 60), "runs/monday");
  EXPECT_EQ(job.place, "runs/monday");
  EXPECT_EQ(job.command, (std::vector<std::string>{"python", "train.py"}));
  EXPECT_EQ(job.exit_code, 3);
  EXPECT_EQ(job.steps, 100u);
  EXPECT_EQ(job.times.compute_ms, 40);
  EXPECT_EQ(job.times.fetch_ms, 60);
  EXPECT_EQ(job.times.prep_ms, 0);
  ASSERT_TRUE(job.verdict);
  EXPECT_EQ(job.verdict->share.high, 0.7);
  EXPECT_FALSE(job.verdict->gain);
  ASSERT_TRUE(job.loader);
  EXPECT_EQ(job.loader->name, "train");
  ASSERT_EQ(job.loader->settings.size(), 1u);
  EXPECT_EQ(job.loader->settings[0].value, "2");
  ASSERT_TRUE(job.host);
  EXPECT_EQ(job.host->memory_limit_bytes, 4096.0);
  EXPECT_FALSE(job.host->accelerators) << "unknown is not none";
}

TEST(MeasureJson, RefusesWhatIsNoAnswerAndFiguresThatCannotBe) {
  Json json = measured_answer(40, 60);
  json["schema"] = "other/1";
  EXPECT_NE(refusal_of(json).find("schema"), std::string::npos);
  json = measured_answer(40, 60);
  json["total"] = 7;
  EXPECT_NE(refusal_of(json).find("`total`"), std::string::npos);
  EXPECT_NE(refusal_of(measured_answer(-40, 60)).find("`runs/monday/measure.json`: -40"), std::string::npos);
  EXPECT_NE(refusal_of(Json(7)).find("no JSON object"), std::string::npos);
}

TEST(MeasureJson, KeepsTheStepsOfTheFirstRankAndLoader) {
  const auto steps = parse_steps(std::string(kStepsHeader) +
                                     "0,val,evaluation,0,1,1,0\n0,train,train,1,100,40,2\n1,train,train,1,100,40,2\n"
                                     "0,train,train,1.1,200,50,3\n",
                                 "runs/monday");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].asked_s, 1.1);
  EXPECT_EQ(steps[1].step_s, 0.2);
  EXPECT_EQ(steps[1].compute_s, 0.05);
  EXPECT_EQ(steps[1].ready, 3);
}

TEST(MeasureJson, NamesTheLineOfAStepThatCannotBe) {
  try {
    parse_steps(std::string(kStepsHeader) + "0,a,train,0,-5,1,0\n", "runs/monday");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("steps.csv`, line 2: step_ms is `-5`"), std::string::npos) << error.message();
  }
}

TEST(MeasureJson, AFolderNeedsNoSteps) {
  const os::TempFolder folder;
  os::write_file(folder.path() + "/measure.json", measured_answer(40, 60).dump());
  const MeasuredJob job = read_measured_job(folder.path());
  EXPECT_EQ(job.files, std::vector<std::string>{"measure.json"});
  EXPECT_TRUE(job.training.empty());
}

}  // namespace
}  // namespace stoker::report
