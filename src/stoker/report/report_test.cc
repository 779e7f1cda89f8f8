#include "stoker/report/report.h"

#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/plan/answer_json.h"
#include "stoker/report/charts.h"
#include "stoker/report/from_measure.h"
#include "stoker/report/from_plan.h"
#include "stoker/report/from_run.h"
#include "stoker/report/words.h"
#include "stoker/tune/config_json.h"
#include "stoker/tune/results_csv.h"

namespace stoker::report {
namespace {

tune::RecordedRun run_of(const std::string& csv, std::string place = "rows.csv") {
  tune::Results results = tune::read_results(csv, place);
  tune::RecordedRun run{.place = std::move(place), .knobs = results.knobs, .rows = results.rows};
  run.choice = tune::choose(run.rows);
  return run;
}

tune::RecordedRun case_a() {
  std::ifstream in(STOKER_TEST_DATA "/case_a.csv");
  return run_of({std::istreambuf_iterator<char>(in), {}}, "case_a.csv");
}

bool says(const std::vector<std::string>& sentences, std::string_view words) {
  for (const std::string& sentence : sentences) {
    if (sentence.find(words) != std::string::npos) return true;
  }
  return false;
}

std::string all_of(const std::vector<std::string>& sentences) {
  return fmt::format("{}", fmt::join(sentences, "\n"));
}

TEST(ReportOfARun, SaysOfCaseAWhatTheTeamFoundAndWhatItMissed) {
  const Report report = from_run(case_a());
  EXPECT_NE(report.headline.find("8 workers"), std::string::npos) << report.headline;
  EXPECT_NE(report.outcome.find("72 points, 50 ok, 22 runtime_fault"), std::string::npos) << report.outcome;
  EXPECT_TRUE(says(report.findings, "num_workers=0 gives 78.0 samples/s (io_bound): the choice is 6.3x as fast"))
      << all_of(report.findings);
  EXPECT_TRUE(says(report.findings, "16, 24 and 32 give 482 to 503 samples/s")) << all_of(report.findings);
  EXPECT_TRUE(says(report.findings, "pin_memory: True is chosen; False is 5.9 % slower")) << all_of(report.findings);
  EXPECT_TRUE(says(report.findings, "all 12 with batch_size=512")) << all_of(report.findings);
  EXPECT_TRUE(says(report.findings, "not a lack of memory"));
  EXPECT_TRUE(says(report.findings, "None of the 50 rates has an interval")) << all_of(report.findings);
  EXPECT_TRUE(says(report.findings, "With 16 workers and more")) << all_of(report.findings);
  ASSERT_TRUE(report.knee);
  EXPECT_EQ(report.knee->knee, 8);
  ASSERT_TRUE(report.heat);
  EXPECT_EQ(report.heat->rows.size(), 6u);
  EXPECT_EQ(report.heat->cells[5][5].glyph, "×");
}

TEST(ReportOfARun, LeavesOutSectionsWithoutData) {
  const Report report = from_run(case_a());
  EXPECT_TRUE(report.split.empty());
  EXPECT_TRUE(report.timelines.empty());
  EXPECT_TRUE(report.memory.empty());
  const std::string html = to_html(report), markdown = to_markdown(report);
  for (const std::string title : {"Step split", "Memory", "Plan", "Options", "Before and after"}) {
    EXPECT_EQ(html.find("<h2>" + title), std::string::npos) << title;
    EXPECT_EQ(markdown.find("## " + title), std::string::npos) << title;
  }
}

TEST(ReportOfARun, InWhichNothingRanExplainsTheFailuresAndChoosesNothing) {
  const Report report =
      from_run(run_of("trial,status,batch_size,num_workers,images_per_s,error\n1,oom_device,32,0,,CUDA out of "
                      "memory\n2,hang,32,4,,\n"));
  EXPECT_EQ(report.headline, "None of 2 points ran, so nothing is chosen.");
  EXPECT_FALSE(report.choice);
  EXPECT_FALSE(report.knee);
  EXPECT_TRUE(says(report.findings, "oom_device: the accelerator's memory ran out"));
  EXPECT_TRUE(says(report.findings, "CUDA out of memory"));
  EXPECT_TRUE(says(report.findings, "Nothing can be planned"));
  EXPECT_NE(to_html(report).find("▲"), std::string::npos);
}

TEST(ReportOfARun, OfOnePointSaysThatItIsOne) {
  const Report report =
      from_run(run_of("trial,status,batch_size,num_workers,images_per_s,ci_low,ci_high\n1,ok,32,4,100,95,105\n"));
  EXPECT_NE(report.headline.find("One point was measured"), std::string::npos) << report.headline;
  EXPECT_NE(report.headline.find("(95 %: 95.0 to 105)"), std::string::npos) << report.headline;
  EXPECT_FALSE(report.knee);
  EXPECT_FALSE(report.heat);
  EXPECT_TRUE(says(report.reasons, "any second point"));
}

TEST(ReportOfARun, GivesTheIntervalThatTheRowHas) {
  const Report report =
      from_run(run_of("trial,status,num_workers,images_per_s,ci_low,ci_high\n1,ok,0,100,0,300\n2,ok,1,200,150,400\n"));
  EXPECT_NE(report.headline.find("150 to 400"), std::string::npos) << report.headline;
}

TEST(ReportOfARun, WithoutRowsSaysSo) {
  const Report report = from_run(run_of("trial,status,batch_size,images_per_s\n"));
  EXPECT_EQ(report.headline, "Nothing was tried: there are no rows.");
  EXPECT_FALSE(report.trials);
}

TEST(ReportOfARun, TakesAnotherKnobForTheAxisWhereThereAreNoWorkers) {
  const Report report =
      from_run(run_of("status,io_depth,storage,images_per_s\nok,1,mmap,100\nok,8,mmap,300\nok,64,mmap,310\n"));
  ASSERT_TRUE(report.knee);
  EXPECT_EQ(report.knee->x_label, "io_depth");
}

TEST(ReportOfARun, MeansRepeatedTrialsAndKeepsTheirInterval) {
  const Report report = from_run(
      run_of("status,num_workers,images_per_s,ci_low,ci_high\nok,1,100,90,110\nok,2,200,190,210\nok,2,220,210,230\n"));
  ASSERT_TRUE(report.knee);
  const Mark& mark = report.knee->curves[0].marks[1];
  EXPECT_EQ(mark.y.value, 210);
  EXPECT_NEAR(*mark.y.high - *mark.y.low, 20.0, 1e-9);
}

TEST(ReportOfARun, SplitsTheStepsOfTrialsThatReportedThem) {
  tune::RecordedRun run = run_of("trial,status,num_workers,images_per_s\n1,ok,1,100\n2,ok,2,200\n");
  run.blocks[1] = {{.steps = 2,
                    .samples = 20,
                    .seconds = 0.2,
                    .compute_s = 0.02,
                    .fetch_s = 0.1,
                    .prep_s = 0.07,
                    .handoff_s = 0.01}};
  run.blocks[2] = {{.steps = 2,
                    .samples = 20,
                    .seconds = 0.1,
                    .compute_s = 0.02,
                    .fetch_s = 0.08,
                    .prep_s = 0,
                    .handoff_s = 0,
                    .queue_depth = 1.5},
                   {.steps = 2,
                    .samples = 20,
                    .seconds = 0.1,
                    .compute_s = 0.1,
                    .fetch_s = 0,
                    .prep_s = 0,
                    .handoff_s = 0,
                    .queue_depth = 3}};
  const Report report = from_run(run);
  ASSERT_EQ(report.split.size(), 2u);
  EXPECT_NEAR(report.split[0].total_ms(), 100, 1e-9);
  ASSERT_EQ(report.timelines.size(), 1u);
  EXPECT_EQ(report.timelines[0].points.size(), 2u);
  EXPECT_EQ(report.timelines[0].points[1].compute, 1.0);
}

TEST(ReportOfARun, DrawsMemoryAgainstTheMachinesLimit) {
  tune::RecordedRun run =
      run_of("status,num_workers,images_per_s,host_peak_bytes\nok,1,100,1000000000\nok,2,200,2000000000\n");
  run.config = tune::RunConfig{.environment = tune::Environment{.memory_bytes = 4000000000u}};
  const Report report = from_run(run);
  ASSERT_EQ(report.memory.size(), 1u);
  EXPECT_EQ(report.memory[0].limit, 4e9);
  EXPECT_NE(to_html(report).find("limit 3.7 GiB"), std::string::npos);
}

TEST(ReportOfARun, WritesTheCommandThatRunsItAgain) {
  tune::RecordedRun run = run_of("status,num_workers,images_per_s\nok,1,100\n", "runs/x");
  run.config = tune::parse_config({{"schema", "stoker.tune.config/1"},
                                   {"source", nullptr},
                                   {"command", {"python", "train it.py", "-j", "{num_workers}"}},
                                   {"grid", {{"num_workers", {"1", "2"}}}},
                                   {"search", "grid"},
                                   {"bench_steps", 20}});
  const Report report = from_run(run);
  ASSERT_GE(report.commands.size(), 2u);
  EXPECT_EQ(report.commands[0].text,
            "stoker tune --grid num_workers=1,2 --search grid --bench-steps 20 --out runs/x-again -- python 'train "
            "it.py' -j {num_workers}");
  EXPECT_EQ(report.commands[1].text, "python 'train it.py' -j 1");
}

TEST(ReportOfARun, WritesTheCommandOfAFunctionAndOfKeysInAFile) {
  tune::RecordedRun run = run_of("status,training.workers,images_per_s\nok,1,100\n", "runs/x");
  run.config = tune::parse_config({{"schema", "stoker.tune.config/1"},
                                   {"function", "job.py:build"},
                                   {"source", "data/train"},
                                   {"settings", {{"seed", "7"}, {"img_size", "224"}}},
                                   {"config", "train.yaml"},
                                   {"set", Json::array({"training.workers"})},
                                   {"grid", {{"training.workers", {"1", "4"}}}}});
  const Report report = from_run(run);
  EXPECT_EQ(report.commands[0].text,
            "stoker tune job.py:build data/train --with img_size=224 --seed 7 --set training.workers=1,4 --config "
            "train.yaml --out runs/x-again");
  EXPECT_EQ(report.commands.size(), 2u) << "a function is no command to run";
}

TEST(ReportOfARun, CutsATableOfThousandsOfTrialsAndSaysSo) {
  std::string csv = "status,batch_size,num_workers,images_per_s\n";
  for (int i = 0; i < 5000; ++i) csv += fmt::format("ok,{},{},{}\n", i / 50, i % 50, 100 + i);
  const Report report = from_run(run_of(csv));
  EXPECT_EQ(report.trials->rows.size(), 400u);
  EXPECT_NE(report.trials->note.find("first 400 of 5000"), std::string::npos);
}

// Markdown without what stands between fences, where everything is text.
std::string outside_fences(const std::string& markdown) {
  std::istringstream lines(markdown);
  std::string text, line;
  bool is_inside = false;
  while (std::getline(lines, line)) {
    if (line.starts_with("```")) is_inside = !is_inside;
    if (!is_inside) text += line + "\n";
  }
  EXPECT_FALSE(is_inside);
  return text;
}

TEST(Renderings, BreakLongSettingsOfATileBehindTheirEqualsSign) {
  Report report;
  report.tiles.push_back({"against the slowest", "1.77x", "39.9/s with persistent_workers=true"});
  EXPECT_NE(to_html(report).find("persistent_workers=<wbr/>true"), std::string::npos);
}

TEST(Renderings, KeepHostileTextAsText) {
  const std::string evil = "</script><script>alert(1)</script>|`x`\x1b[2J";
  tune::RecordedRun run = run_of("status,num_workers,batch_size,images_per_s,error\nok,1,1,100,\nok,2,1,110,\n");
  run.place = evil;
  run.notes = {evil};
  run.config = tune::parse_config({{"source", evil}, {"grid", {{evil, {evil}}}}, {"environment", {{evil, evil}}}});
  run.rows[0].error = evil;
  run.rows[0].status = tune::Status::runtime_fault;
  run.rows[0].knobs["batch_size"] = evil;
  run.files = {"javascript:alert(1)"};
  run.choice = tune::choose(run.rows);
  const Report report = from_run(run);
  const std::string html = to_html(report), markdown = to_markdown(report);
  std::size_t scripts = 0;
  for (std::size_t at = html.find("<script"); at != std::string::npos; at = html.find("<script", at + 1)) ++scripts;
  EXPECT_EQ(scripts, 1u);
  EXPECT_EQ(html.find('\x1b'), std::string::npos);
  EXPECT_EQ(html.find("href=\"javascript:"), std::string::npos);
  EXPECT_EQ(outside_fences(markdown).find("<script"), std::string::npos);
  EXPECT_EQ(to_text(report).find('\x1b'), std::string::npos);
}

TEST(Renderings, HaveTheSameSectionsInTheSameOrder) {
  tune::RecordedRun run = case_a();
  run.files = {"results.csv"};
  const Report report = from_run(run);
  const std::string html = to_html(report), markdown = to_markdown(report);
  std::size_t in_html = 0, in_markdown = 0;
  for (const std::string title : {"Context", "Configuration and environment", "Outcomes", "Findings", "Knee curve",
                                  "Heat map", "Best and chosen configuration", "Commands to reproduce", "Raw data"}) {
    const std::size_t h = html.find("<h2>" + title + "</h2>"), m = markdown.find("## " + title + "\n");
    ASSERT_NE(h, std::string::npos) << title;
    ASSERT_NE(m, std::string::npos) << title;
    EXPECT_GT(h, in_html) << title;
    EXPECT_GT(m, in_markdown) << title;
    in_html = h;
    in_markdown = m;
  }
}

TEST(Words, RoundAsAPersonWould) {
  EXPECT_EQ(per_second(502.84), "503");
  EXPECT_EQ(percent(0.0589), "5.9 %");
  EXPECT_EQ(percent(0.31), "31 %");
  EXPECT_EQ(percent(0.0004), "below 0.1 %");
  EXPECT_EQ(milliseconds(18.24), "18.2 ms");
  EXPECT_EQ(milliseconds(17999), "18.00 s");
  EXPECT_EQ(ratio(6.346), "6.3x");
  EXPECT_EQ(plural(1, "point"), "1 point");
  EXPECT_EQ(sentence("a quieter machine"), "A quieter machine.");
  EXPECT_EQ(sentence("num_workers=8: 2.0x"), "num_workers=8: 2.0x.");
  EXPECT_EQ(sentence("stoker run --supply -- python train.py"), "stoker run --supply -- python train.py.")
      << "what people copy and run";
}

MeasuredJob measured_job(double compute, double fetch, double rate, std::string place = "runs/monday") {
  return {.place = std::move(place),
          .command = {"python", "train.py"},
          .headline = "fetch_bound (io_bound) 60.0 % (+-10.0), severe: 2.50x faster if fetch were free",
          .seconds = 10,
          .verdict = MeasuredVerdict{.bound = "fetch_bound",
                                     .share = {.value = fetch / (compute + fetch), .low = 0.5, .high = 0.7},
                                     .gain = 2.5},
          .steps = 100,
          .step_ms = compute + fetch,
          .times = {.compute_ms = compute, .fetch_ms = fetch},
          .loader = MeasuredLoader{.settings = {{"num_workers", "2"}, {"batch_size", "32"}}, .samples_per_s = rate},
          .why = {"its samples wait for bytes"},
          .advice = {"num_workers=8: 2.0x"}};
}

TEST(ReportOfAMeasuredJob, LeadsWithTheVerdictAndSplitsTheStep) {
  MeasuredJob job = measured_job(40, 60, 320);
  for (int i = 0; i < 20; ++i)
    job.training.push_back({.asked_s = 0.1 * i, .step_s = 0.1, .compute_s = 0.04, .ready = static_cast<double>(i % 4)});
  const Report report = from_measure(job);
  EXPECT_NE(report.headline.find("fetch_bound (io_bound) 60.0 %"), std::string::npos) << report.headline;
  ASSERT_EQ(report.split.size(), 1u);
  EXPECT_EQ(report.split[0].total_ms(), 100);
  ASSERT_EQ(report.timelines.size(), 1u);
  EXPECT_NEAR(*report.timelines[0].points[3].compute, 0.4, 0.01);
  ASSERT_EQ(report.options.size(), 1u);
  EXPECT_EQ(report.options[0].title, "Option A");
  EXPECT_TRUE(says(report.findings, "Its samples wait for bytes."));
}

TEST(Timelines, OfManyBlocksAreAsLargeAsAPicture) {
  Timeline line{.label = "fast"};
  for (int i = 0; i < 60'000; ++i)
    line.points.push_back({.from_s = i * 1e-5, .to_s = (i + 1) * 1e-5, .ready = 3, .compute = i < 30'000 ? 0.0 : 1.0});
  const std::string chart = timeline_chart(line, 720);
  EXPECT_LT(chart.size(), 300'000u);
  EXPECT_NE(chart.find("over 0.6 s"), std::string::npos) << chart.substr(0, 400);
}

TEST(Comparing, SaysTheChangeAndItsInterval) {
  const Comparison change =
      compare({side_of(measured_job(40, 60, 320)), side_of(measured_job(40, 10, 640, "runs/tuesday"))});
  EXPECT_EQ(change.sentence, "2.0x faster: from 320 to 640 samples/s.");
  EXPECT_EQ(change.bars.size(), 2u);
  Side before{.label = "a", .rate = {.value = 100, .low = 90, .high = 110}},
      after{.label = "b", .rate = {.value = 105, .low = 95, .high = 115}};
  EXPECT_EQ(compare({before, after}).sentence,
            "No measurable change: from 100 to 105 samples/s, 1.05x (95 %: 0.86x to 1.28x).");
  after.rate = {.value = 181, .low = 179, .high = 183};
  EXPECT_EQ(compare({before, after}).sentence, "1.81x faster: from 100 to 181 samples/s (95 %: 1.63x to 2.0x).");
  before.rate = {.value = 100}, after.rate = {.value = 105};  // one run of each, without an interval
  EXPECT_EQ(compare({before, after}).sentence,
            "No measurable change: from 100 to 105 samples/s, 1.05x; two runs may differ by 10 % without any change.");
  after.rate = {.value = 80};
  EXPECT_EQ(compare({before, after}).sentence, "1.25x slower: from 100 to 80.0 samples/s.");
  before.rate = {.value = 1000, .low = 999, .high = 1001}, after.rate = {.value = 1010, .low = 1009, .high = 1011};
  EXPECT_EQ(compare({before, after}).sentence.find("A change below 2 %: from 1"), 0u)
      << compare({before, after}).sentence;
}

Json range(double p10, double p50, double p90) {
  return {{"p10", p10}, {"p50", p50}, {"p90", p90}};
}

Json large_and_giant() {
  Json plan = {{"schema", "stoker.plan/1"},
               {"headline", "ViT-Large fits: 14 days of 15"},
               {"pivot", "Giant would take 61 days"},
               {"job", {{"images", 28.4e6}, {"budget_days", 15}, {"needed_images_per_s", 21.9}}},
               {"chosen_run", 0},
               {"notes", {"one run only"}}};
  Json run = {{"name", "ViT-Large"}};
  run["configurations"] = Json::array();
  run["configurations"].push_back({{"knobs", {{"batch_size", "64"}}},
                                   {"chosen", true},
                                   {"interval", "assumed"},
                                   {"images_per_s", range(22.5, 23.51, 24.4)},
                                   {"days", range(13.5, 14, 14.6)},
                                   {"images_per_day", range(1.9e6, 2.03e6, 2.1e6)},
                                   {"verdict", "fits"}});
  run["options"] = Json::array();
  run["options"].push_back({{"name", "batch_size=128"},
                            {"change", "twice the batch"},
                            {"worth", false},
                            {"reason", "raising the batch cannot help: the loader is the limit"}});
  run["options"].push_back({{"name", "num_workers=12"},
                            {"change", "more workers"},
                            {"worth", true},
                            {"gain", range(2, 3, 4)},
                            {"risk", "low"},
                            {"reason", "84 of 170 GB"},
                            {"host_peak_bytes", 84e9},
                            {"host_limit_bytes", 170e9},
                            {"command", "stoker tune data --grid num_workers=12"}});
  Json points = Json::array();
  for (const double batch : {48.0, 96.0}) {
    points.push_back(
        {{"batch_size", batch}, {"predicted_bytes", 4e9 + 4e7 * batch}, {"observed_bytes", 4e9 + 4.1e7 * batch}});
  }
  points.push_back({{"batch_size", 128},
                    {"predicted_bytes", 9e9},
                    {"observed_bytes", nullptr},
                    {"out_of_memory", true},
                    {"unexplained", true}});
  run["device_memory"] = {{"basis", "model"}, {"limit_bytes", 12e9}, {"largest_batch", 160}, {"points", points}};
  plan["runs"] = Json::array({run});
  return plan;
}

TEST(ReportOfAPlan, OptionsAreThoseOfTheRunWhoseFolderItLiesIn) {
  Json plan = large_and_giant();
  plan["runs"][0]["source"] = "runs/large";
  Json giant = {{"name", "giant"}, {"source", "runs/giant/"}};
  giant["options"] = Json::array({{{"name", "checkpointing=1"}, {"worth", true}, {"gain", range(1, 2, 3)}}});
  plan["runs"].push_back(giant);
  Report of_giant, of_large, elsewhere;
  add_plan(plan::parse_plan(plan, ""), "there/runs/giant/plan.json", of_giant);
  add_plan(plan::parse_plan(plan, ""), "runs/large/plan.json", of_large);
  add_plan(plan::parse_plan(plan, ""), "plan.json", elsewhere);
  ASSERT_EQ(of_giant.options.size(), 1u);
  EXPECT_NE(of_giant.options[0].title.find("checkpointing=1"), std::string::npos);
  EXPECT_EQ(of_large.options.size(), 2u);
  EXPECT_EQ(elsewhere.options.size(), 2u) << "the run that the plan would take";
}

TEST(ReportOfAPlan, KeepsTheSpellingOfRuns) {
  Json plan = large_and_giant();
  plan["headline"] = "files fits 15 days: 14 days";
  plan["pivot"] = "nothing else fits";
  plan["runs"][0]["name"] = "files";
  const Report report = from_plan(plan::parse_plan(plan, "plan.json"), "plan.json");
  EXPECT_EQ(report.headline, "files fits 15 days: 14 days.");
  EXPECT_TRUE(says(report.plan_sentences, "Nothing else fits."));
}

TEST(ReportOfAPlan, HasDaysWithTheirRangeOptionsAndTheMemoryLine) {
  const Report report = from_plan(plan::parse_plan(large_and_giant(), "plan.json"), "plan.json");
  EXPECT_EQ(report.headline, "ViT-Large fits: 14 days of 15.");
  EXPECT_TRUE(says(report.plan_sentences, "28.4 M images, within 15.0 days; that takes 21.9 images/s"))
      << all_of(report.plan_sentences);
  ASSERT_EQ(report.plan.size(), 1u);
  EXPECT_EQ(report.plan[0].rows[0],
            (std::vector<std::string>{"batch_size=64 (chosen)", "14.0 days (13.5 to 14.6)", "2.03 M (1.9 M to 2.1 M)",
                                      "23.5 (22.5 to 24.4)", "fits"}));
  EXPECT_NE(report.plan[0].note.find("assumed"), std::string::npos);
  ASSERT_EQ(report.options.size(), 2u);
  EXPECT_EQ(report.options[0].title, "A. num_workers=12");
  EXPECT_EQ(report.options[0].gain, "3.0x (2.0x to 4.0x)");
  EXPECT_EQ(report.options[0].facts[0].value, "78.2 GiB of 158.3 GiB");
  EXPECT_EQ(report.options[1].title, "batch_size=128");
  ASSERT_EQ(report.memory.size(), 1u);
  EXPECT_EQ(report.memory[0].limit, 12e9);
  EXPECT_EQ(report.memory[0].failed.size(), 1u);
  EXPECT_NE(report.memory[0].note.find("Unexplained"), std::string::npos);
}

TEST(ReportOfAPlan, HasCombinationsAndTheMemoryByParts) {
  Json plan = large_and_giant();
  plan["runs"][0]["bundles"] = Json::array({Json{{"label", "A"},
                                                 {"title", "careful"},
                                                 {"changes", {"local copy", "num_workers=4"}},
                                                 {"gain", range(2, 3, 4)},
                                                 {"epoch_hours", 5},
                                                 {"host_peak_bytes", 28e9},
                                                 {"risk", "low"},
                                                 {"reason", "28 of 170 GB"}}});
  plan["runs"][0]["device_memory"]["parts"] =
      Json::array({Json{{"name", "activations"}, {"fixed_bytes", 0}, {"bytes_per_image", 4e7}}});
  plan["runs"][0]["device_memory"]["parts_batch"] = 64;
  const Report report = from_plan(plan::parse_plan(plan, "plan.json"), "plan.json");
  ASSERT_EQ(report.plan.size(), 3u);
  EXPECT_EQ(report.plan[1].rows[0], (std::vector<std::string>{"activations", "0 B", "38.1 MiB", "2.4 GiB"}));
  EXPECT_EQ(report.plan[2].rows[0][0], "A, careful");
  EXPECT_EQ(report.plan[2].rows[0][1], "local copy + num_workers=4");
  EXPECT_EQ(report.plan[2].rows[0][2], "low: 28 of 170 GB");
  EXPECT_EQ(report.plan[2].rows[0][3], "3.0x (2.0x to 4.0x)");
}

TEST(ReportOfAPlan, RefusesWhatIsNoPlan) {
  EXPECT_THROW(plan::parse_plan(Json::array(), "plan.json"), Error);
  EXPECT_THROW(plan::parse_plan({{"schema", "other/1"}}, "plan.json"), Error);
}

}  // namespace
}  // namespace stoker::report
