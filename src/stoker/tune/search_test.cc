#include "stoker/tune/search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/base/random.h"
#include "stoker/tune/choose.h"
#include "stoker/tune/grid_test.h"

namespace stoker::tune {
namespace {

SearchOptions over(std::initializer_list<const char*> knobs) {
  return {.grid = grid(knobs)};
}

const auto kCaseA = {"batch_size=32,64,128,192,256,512", "num_workers=0,4,8,16,24,32", "pin_memory=true,false"};

double of(const Point& point, std::string_view knob) {
  return number_of(point, knob).value();
}

using Job = std::function<void(const Point&, Row&)>;

// What a search asked for, in order, and what it was told.
struct Story {
  std::vector<Row> rows;
  std::vector<std::string> whys;
  std::set<Point> points;
  bool has(const std::string& why) const { return std::find(whys.begin(), whys.end(), why) != whys.end(); }
};

Story run(Search& search, const Job& job, std::size_t most = 500) {
  Story story;
  while (const std::optional<Ask> ask = search.next()) {
    if (story.rows.size() == most) {
      ADD_FAILURE() << "it does not end";
      break;
    }
    EXPECT_EQ(ask->repeat, story.points.contains(ask->point)) << ask->why;
    Row row{.trial = story.rows.size() + 1, .knobs = ask->point};
    job(ask->point, row);
    search.tell(row);
    story.points.insert(ask->point);
    story.whys.push_back(ask->why);
    story.rows.push_back(std::move(row));
  }
  return story;
}

std::string best_of(const Story& story) {
  const Choice choice = choose(story.rows);
  return choice.best ? text(story.rows[*choice.best].knobs) : "none";
}

void fail(Row& row, Status status) {
  row = {.trial = row.trial, .status = status, .knobs = row.knobs};
}

// A step of a few ms and 1 ms per 100 images, 60 images per second and worker up to `cores`.
void feed(const Point& point, Row& row, double cores, double fixed_ms = 20) {
  const double batch = of(point, "batch_size"), workers = of(point, "num_workers");
  const bool pinned = !point.contains("pin_memory") || of(point, "pin_memory") == 1;
  const double compute_s = (fixed_ms + batch) / 1000 * (pinned ? 1 : 1.05);
  const double built = workers == 0 ? 60 : 60 * std::min(workers, cores) / (1 + 0.002 * workers);
  const double step_s = workers == 0 ? compute_s + batch / built : std::max(compute_s, batch / built);
  row.images_per_s = batch / step_s;
  row.step_ms = 1000 * step_s;
  row.compute_ms = 1000 * compute_s;
  row.data_ms = 1000 * (step_s - compute_s);
}

TEST(GridSearch, TriesEveryPointOnceInOrder) {
  const SearchOptions options = over({"batch_size=32,64", "num_workers=0,4"});
  const auto search = grid_search(options);
  EXPECT_EQ(search->at_most(), 4u);
  const Story story = run(*search, [](const Point&, Row& row) { row.images_per_s = 1; });
  ASSERT_EQ(story.rows.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(story.rows[i].knobs, options.grid.point(i));
  EXPECT_EQ(search->at_most(), 0u);
  EXPECT_TRUE(search->left_out().empty());
}

TEST(GridSearch, ResumesWithWhatItIsTold) {
  const auto search = grid_search(over({"batch_size=32,64,128"}));
  search->tell({.knobs = {{"batch_size", "32"}}, .images_per_s = 5});
  search->tell({.knobs = {{"batch_size", "999"}}, .images_per_s = 5});  // of another experiment
  const Story story = run(*search, [](const Point&, Row& row) { row.images_per_s = 1; });
  EXPECT_EQ(story.rows.size(), 2u);
}

TEST(GridSearch, LeavesOutLargerBatchesAfterMemoryRanOut) {
  const auto search = grid_search(over({"batch_size=32,64,128,256", "num_workers=0,4", "amp=off,bf16"}));
  const Story story = run(*search, [](const Point& point, Row& row) {
    row.images_per_s = 1;
    if (of(point, "batch_size") >= 64 && point.at("amp") == "off") fail(row, Status::oom_device);
  });
  // With amp off, 64 fails at 0 workers; the same batch with 4 workers and all larger ones need as much. bf16 is
  // another matter.
  EXPECT_EQ(story.rows.size(), 2u + 8u + 1u);
  const std::vector<Row> left_out = search->left_out();
  ASSERT_EQ(left_out.size(), 5u);
  for (const Row& row : left_out) {
    EXPECT_EQ(row.status, Status::pruned);
    EXPECT_EQ(row.knobs.at("amp"), "off");
    EXPECT_EQ(row.error, "oom_device at amp=off batch_size=64 num_workers=0, and this needs as much");
  }
}

TEST(GridSearch, HostMemoryThatRanOutRulesOutMoreWorkersToo) {
  const auto search = grid_search(over({"batch_size=32,64", "num_workers=2,4,8"}));
  const Story story = run(*search, [](const Point& point, Row& row) {
    row.images_per_s = 1;
    if (of(point, "num_workers") >= 4) fail(row, Status::oom_host);
  });
  std::vector<std::string> tried;
  for (const Row& row : story.rows) tried.push_back(text(row.knobs));
  EXPECT_EQ(tried, (std::vector<std::string>{"batch_size=32 num_workers=2", "batch_size=32 num_workers=4",
                                             "batch_size=64 num_workers=2"}));
}

TEST(GridSearch, FaultsRuleOutNothing) {
  const auto search = grid_search(over({"batch_size=32,64,128"}));
  EXPECT_EQ(run(*search, [](const Point&, Row& row) { fail(row, Status::runtime_fault); }).rows.size(), 3u);
  EXPECT_TRUE(search->left_out().empty());
}

TEST(GridSearch, StopsAtAnErrorOfTheUsersCode) {
  const auto search = grid_search(over({"batch_size=32,64,128"}));
  EXPECT_EQ(run(*search, [](const Point&, Row& row) { fail(row, Status::user_error); }).rows.size(), 1u);
}

TEST(GridSearch, StopsAfterThreeOfWhichNothingWasSeen) {
  const auto search = grid_search(over({"batch_size=1,2,3,4,5,6,7"}));
  const auto unseen = [](const Point&, Row& row) {
    fail(row, Status::hang);
    row.steps = 0;
  };
  EXPECT_EQ(run(*search, unseen).rows.size(), 3u);
  const auto hanging = grid_search(over({"batch_size=1,2,3,4,5,6,7"}));
  EXPECT_EQ(run(*hanging, [](const Point&, Row& row) { fail(row, Status::hang); }).rows.size(), 7u);
}

TEST(GridSearch, AnErrorOfOnePointIsItsOwnWhereOthersRanButThreeInARowAreNot) {
  const auto search = grid_search(over({"batch_size=1,2,3,4,5,6,7,8,9"}));
  const Story story = run(*search, [](const Point& point, Row& row) {
    const double batch = of(point, "batch_size");
    if (batch == 2 || batch > 3) return fail(row, Status::user_error);
    row.images_per_s = batch;
  });
  EXPECT_EQ(story.rows.size(), 6u) << "1 and 3 ran; 4, 5 and 6 were three in a row";
}

TEST(GridSearch, SkipsWhatWouldNotFitTheDeviceByALineThroughTwoBatches) {
  SearchOptions options = over({"batch_size=48,64,96,128,160"});
  options.limits.device_bytes = 10'000'000'000;
  const auto search = grid_search(options);
  const Story story = run(*search, [](const Point& point, Row& row) {
    row.images_per_s = 1;
    row.device_reserved_bytes = static_cast<std::uint64_t>(4.8e9 + 33e6 * of(point, "batch_size"));
  });
  EXPECT_EQ(story.rows.size(), 4u);  // 128: 9.02 GB of 9.2 allowed; 160: 10.1
  const std::vector<Row> left_out = search->left_out();
  ASSERT_EQ(left_out.size(), 1u);
  EXPECT_EQ(left_out[0].status, Status::skipped_memory);
  EXPECT_EQ(left_out[0].knobs.at("batch_size"), "160");
  EXPECT_NE(left_out[0].error.find("would take about 9.4 GiB of 9.3 GiB on the device"), std::string::npos)
      << left_out[0].error;
}

TEST(GridSearch, SkipsWhatWouldNotFitTheHost) {
  SearchOptions options = over({"batch_size=32,64", "num_workers=1,2,4,8"});
  options.limits.host_bytes = 50'000'000'000;
  const auto search = grid_search(options);
  run(*search, [](const Point& point, Row& row) {
    row.images_per_s = 1;
    row.host_peak_bytes = static_cast<std::uint64_t>(1e9 + 5e9 * of(point, "num_workers") +
                                                     1e6 * 2 * of(point, "num_workers") * of(point, "batch_size"));
  });
  // 8 workers: 41.5 GB fit below 85 % of 50 GB at batch 32, 42.0 GB at batch 64 too.
  EXPECT_TRUE(search->left_out().empty());
  options.limits.host_bytes = 45'000'000'000;
  const auto tight = grid_search(options);
  run(*tight, [](const Point& point, Row& row) {
    row.images_per_s = 1;
    row.host_peak_bytes = static_cast<std::uint64_t>(1e9 + 5e9 * of(point, "num_workers") +
                                                     1e6 * 2 * of(point, "num_workers") * of(point, "batch_size"));
  });
  const std::vector<Row> left_out = tight->left_out();
  ASSERT_FALSE(left_out.empty());
  for (const Row& row : left_out) {
    EXPECT_EQ(row.status, Status::skipped_memory);
    EXPECT_EQ(row.knobs.at("num_workers"), "8");
  }
}

TEST(Searches, KeepTheEffectiveBatch) {
  SearchOptions options = over({"batch_size=16,32,64,128", "accumulate_steps=1,2,4,8", "num_workers=4,8"});
  options.effective_batch = 256;
  for (const bool is_auto : {false, true}) {
    const auto search = is_auto ? auto_search(options) : grid_search(options);
    const Story story = run(*search, [](const Point& point, Row& row) { feed(point, row, 8, 200); });
    EXPECT_GE(story.points.size(), 3u);
    for (const Point& point : story.points)
      EXPECT_EQ(of(point, "batch_size") * of(point, "accumulate_steps"), 256) << text(point);
  }
  options.effective_batch = 100;
  EXPECT_THROW(grid_search(options), Error);
  EXPECT_THROW(auto_search(options), Error);
  EXPECT_THROW(auto_search({}), Error);
}

TEST(AutoSearch, FindsTheBestOfCaseAsGridWithAFractionOfTheTrials) {
  for (const double cores : {4.0, 8.0, 16.0, 32.0}) {
    SearchOptions options = over(kCaseA);
    options.limits.cores = cores;
    double best = 0;
    for (const Point& point : options.grid.points()) {
      Row row;
      feed(point, row, cores);
      best = std::max(best, *row.images_per_s);
    }
    const auto search = auto_search(options);
    const Story story = run(*search, [&](const Point& point, Row& row) { feed(point, row, cores); });
    EXPECT_LE(story.rows.size(), 24u) << cores;
    const Choice choice = choose(story.rows);
    ASSERT_TRUE(choice.best.has_value());
    EXPECT_GE(*story.rows[*choice.best].images_per_s, 0.98 * best) << cores << " " << best_of(story);
    for (const Point& point : story.points)
      EXPECT_NE(of(point, "num_workers"), 0) << "the costliest, and never the best here";
    EXPECT_EQ(search->at_most(), 0u);
    EXPECT_EQ(search->left_out().size() + story.points.size(), options.grid.size());
  }
}

TEST(AutoSearch, DoesNotRaiseTheBatchWhileDataIsTheLimit) {
  SearchOptions options = over({"batch_size=1,2,4,8", "num_workers=1,2,4"});
  const auto search = auto_search(options);
  const Story story = run(*search, [](const Point& point, Row& row) {
    const double batch = of(point, "batch_size"), build_s = 16 * batch / of(point, "num_workers");
    row.images_per_s = batch / build_s;
    row.step_ms = 1000 * build_s;
    row.compute_ms = 1500 * batch;
    row.data_ms = *row.step_ms - *row.compute_ms;
  });
  for (const Point& point : story.points) EXPECT_EQ(of(point, "batch_size"), 1);
  EXPECT_EQ(best_of(story), "batch_size=1 num_workers=4");
}

TEST(AutoSearch, SaysFromWhichTrialItConcludedThatAPointIsNotWorthIt) {
  const auto search = auto_search(over({"batch_size=1,2,4,8", "num_workers=1,2,4,8"}));
  const Story story = run(*search, [](const Point& point, Row& row) {  // two workers feed the step
    const double batch = of(point, "batch_size"), step_ms = 100 * batch;
    const double build_ms = 199 * batch / of(point, "num_workers");
    row.step_ms = std::max(step_ms, build_ms);
    row.compute_ms = step_ms;
    row.data_ms = *row.step_ms - step_ms;
    row.images_per_s = 1000 * batch / *row.step_ms;
  });
  const std::vector<Row> left_out = search->left_out();
  ASSERT_FALSE(left_out.empty());
  for (const Row& row : left_out) {
    const bool names_a_trial = row.error.find("trial ") != std::string::npos;
    EXPECT_TRUE(names_a_trial && row.error.find(" samples/s)") != std::string::npos) << text(row.knobs) << row.error;
    const std::size_t at = row.error.find("trial ") + 6;
    const std::size_t number = std::stoul(row.error.substr(at));
    ASSERT_TRUE(number >= 1 && number <= story.rows.size()) << row.error;
    EXPECT_NE(row.error.find(text(story.rows[number - 1].knobs)), std::string::npos) << row.error;
  }
}

TEST(AutoSearch, RepeatsAFaultOnceAndLooksBeyondIt) {
  SearchOptions options = over({"batch_size=32,64,128,256", "num_workers=4,8,16"});
  options.limits.cores = 4;
  const auto search = auto_search(options);
  const Story story = run(*search, [](const Point& point, Row& row) {
    feed(point, row, 16);
    if (of(point, "num_workers") == 8) fail(row, Status::runtime_fault);
  });
  EXPECT_TRUE(story.has("again after a fault"));
  EXPECT_TRUE(story.has("beyond a fault"));
  std::map<Point, int> faults;
  for (const Row& row : story.rows) faults[row.knobs] += row.status == Status::runtime_fault;
  for (const auto& [point, count] : faults) EXPECT_LE(count, 2) << text(point);
  EXPECT_EQ(of(story.rows[*choose(story.rows).best].knobs, "num_workers"), 16);
}

TEST(AutoSearch, NeverPicksAPointThatFailedOnce) {
  SearchOptions options = over({"batch_size=32,64,128"});
  const auto search = auto_search(options);
  int runs_of_128 = 0;
  const Story story = run(*search, [&](const Point& point, Row& row) {
    row.images_per_s = of(point, "batch_size");
    if (of(point, "batch_size") == 128 && ++runs_of_128 == 1) fail(row, Status::hang);
  });
  EXPECT_EQ(runs_of_128, 2);
  EXPECT_EQ(best_of(story), "batch_size=64");
}

TEST(AutoSearch, MemoryThatRanOutIsNotTriedAgainAboveIt) {
  SearchOptions options = over(kCaseA);
  options.limits.cores = 16;
  const auto search = auto_search(options);
  const Story story = run(*search, [](const Point& point, Row& row) {
    feed(point, row, 16, 100);
    if (of(point, "batch_size") >= 192) fail(row, Status::oom_device);
  });
  double least = 1e9;
  for (const Row& row : story.rows) {
    EXPECT_LT(of(row.knobs, "batch_size"), least);
    if (row.status == Status::oom_device) least = of(row.knobs, "batch_size");
  }
  EXPECT_EQ(of(story.rows[*choose(story.rows).best].knobs, "batch_size"), 128);
}

TEST(AutoSearch, SearchesKnobsThatItHasNeverHeardOf) {
  const auto search = auto_search(over({"depth=1,2,4,8,16,32", "mode=slow,fast"}));
  const Story story = run(*search, [](const Point& point, Row& row) {
    row.images_per_s = (100 - 3 * std::abs(of(point, "depth") - 8)) * (point.at("mode") == "fast" ? 2 : 1);
  });
  EXPECT_EQ(best_of(story), "depth=8 mode=fast");
}

TEST(AutoSearch, RacesWhatItCannotTellApartAndStopsWhereItCan) {
  const auto noisy = auto_search(over({"depth=1,2"}));
  Random random(7, 0, 0);
  const Story close = run(*noisy, [&](const Point&, Row& row) { row.images_per_s = 100 * random.uniform(0.97, 1.03); });
  EXPECT_TRUE(close.has("race, run 2"));
  EXPECT_LE(close.rows.size(), 6u) << "two points are not worth more";
  const auto clear = auto_search(over({"depth=1,2"}));
  const Story far = run(*clear, [](const Point& point, Row& row) { row.images_per_s = of(point, "depth"); });
  EXPECT_EQ(far.rows.size(), 3u) << "each once, and the fastest again";
}

TEST(AutoSearch, DoesNotBelieveARateThatWasSeenOnce) {
  const auto search = auto_search(over({"depth=1,2,3,4,5,6"}));
  int lucky = 0;
  const Story story = run(*search, [&](const Point& point, Row& row) {
    row.images_per_s = 100 + of(point, "depth");
    if (of(point, "depth") == 2 && ++lucky == 1) row.images_per_s = 180;
  });
  EXPECT_GE(lucky, 3) << "two runs that contradict each other want a third";
  EXPECT_GE(of(story.rows[*choose(story.rows).best].knobs, "depth"), 4)
      << "and what was the fastest for once misleads nobody";
}

TEST(AutoSearch, RacesNoLongerThanAShareOfTheGrid) {
  const auto trials = [](double noise) {
    SearchOptions options =
        over({"batch_size=8,16,32,64,96,128,192,256", "num_workers=1,2,4,8", "pin_memory=true,false"});
    options.limits.cores = 8;
    const auto search = auto_search(options);
    Random random(11, 0, 0);
    return run(*search, [&](const Point&, Row& row) { row.images_per_s = 100 * random.uniform(1 - noise, 1 + noise); })
        .rows.size();
  };
  EXPECT_LE(trials(0.02), 22u);
  EXPECT_LE(trials(0.2), 22u) << "nor where no race would tell";
}

TEST(AutoSearch, TriesLargerBatchesWhereHandOffIsTheLimit) {
  SearchOptions options = over({"batch_size=8,16,32,64,128", "num_workers=1,2,4"});
  options.limits.cores = 2;
  const auto search = auto_search(options);
  const Story story = run(*search, [](const Point& point, Row& row) {
    const double batch = of(point, "batch_size"),
                 step_s = 0.01 + batch / 10000;  // 10 ms for each batch whatever its size
    row.images_per_s = batch / step_s;
    row.step_ms = 1000 * step_s;
    row.compute_ms = 1;
    row.data_ms = *row.step_ms - 1;
    row.verdict = "handoff_bound";
  });
  EXPECT_EQ(of(story.rows[*choose(story.rows).best].knobs, "batch_size"), 128);
}

TEST(AutoSearch, TriesNoWorkersWhereHandOffIsTheLimit) {
  const auto search = auto_search(over({"batch_size=16,32", "num_workers=0,1,2"}));
  const Story story = run(*search, [](const Point& point, Row& row) {
    const double workers = of(point, "num_workers"), batch = of(point, "batch_size");
    row.images_per_s = (workers == 0 ? 20000 : 2000 + 100 * workers) * batch / (batch + 1);
    row.step_ms = 1000 * batch / *row.images_per_s;
    row.compute_ms = 0.4 * *row.step_ms;
    row.data_ms = 0.6 * *row.step_ms;
    row.verdict = workers == 0 ? "prep_bound" : "handoff_bound";
  });
  EXPECT_TRUE(best_of(story).ends_with("num_workers=0")) << best_of(story);
}

TEST(AutoSearch, TriesNoWorkersWhereNothingIsKnownOfWaiting) {
  const auto search = auto_search(over({"num_workers=0,1"}));
  const Story story = run(*search, [](const Point&, Row& row) { row.images_per_s = 100; });
  EXPECT_EQ(of(story.rows[*choose(story.rows).chosen].knobs, "num_workers"), 0);
}

TEST(AutoSearch, KnowsWorkersAndBatchesByOtherNames) {
  SearchOptions options = over({"train.batch=32,64,128,192,256,512", "loader.workers=0,4,8,16,24,32"});
  options.limits.cores = 16;
  const auto search = auto_search(options);
  const Story story = run(*search, [](const Point& point, Row& row) {
    feed({{"batch_size", point.at("train.batch")}, {"num_workers", point.at("loader.workers")}}, row, 16);
  });
  EXPECT_TRUE(story.has("start"));
  EXPECT_EQ(story.rows.front().knobs, (Point{{"train.batch", "32"}, {"loader.workers", "16"}}));
  EXPECT_EQ(of(story.rows[*choose(story.rows).best].knobs, "num_workers"), 16);
}

TEST(AutoSearch, LooksForFewerWorkersThatDo) {
  SearchOptions options = over({"batch_size=32", "num_workers=0,2,4,8,16,32"});
  options.limits.cores = 32;
  const auto search = auto_search(options);
  const Story story =
      run(*search, [](const Point& point, Row& row) { feed(point, row, 32, 168); });  // 200 ms: 160 images/s
  EXPECT_EQ(text(story.rows[*choose(story.rows).chosen].knobs), "batch_size=32 num_workers=4");
}

TEST(AutoSearch, FindsSomethingThatRunsWhereTheStartDoesNot) {
  SearchOptions options = over(kCaseA);
  options.limits.cores = 8;
  const auto search = auto_search(options);
  const Story story = run(*search, [](const Point& point, Row& row) {
    feed(point, row, 8);
    if (of(point, "num_workers") > 0 || of(point, "batch_size") < 256) fail(row, Status::runtime_fault);
  });
  ASSERT_TRUE(choose(story.rows).best.has_value());
  EXPECT_EQ(of(story.rows[*choose(story.rows).best].knobs, "num_workers"), 0);
}

TEST(AutoSearch, EndsWhereNothingRuns) {
  const auto search = auto_search(over({"batch_size=32,64", "num_workers=2,4"}));
  const Story story = run(*search, [](const Point&, Row& row) { fail(row, Status::runtime_fault); });
  EXPECT_EQ(story.rows.size(), 8u);  // each twice
  const auto user = auto_search(over({"batch_size=32,64", "num_workers=2,4"}));
  EXPECT_EQ(run(*user, [](const Point&, Row& row) { fail(row, Status::user_error); }).rows.size(), 1u);
}

TEST(AutoSearch, GoesOnWhereItWasWhenItIsToldWhatHappened) {
  SearchOptions options = over(kCaseA);
  options.limits.cores = 16;
  const Job job = [](const Point& point, Row& row) { feed(point, row, 16); };
  const auto whole = auto_search(options);
  const Story story = run(*whole, job);
  ASSERT_GT(story.rows.size(), 10u);
  for (std::size_t stop = 0; stop < story.rows.size(); ++stop) {
    const auto resumed = auto_search(options);
    for (std::size_t i = 0; i < stop; ++i) resumed->tell(story.rows[i]);
    const std::optional<Ask> ask = resumed->next();
    ASSERT_TRUE(ask.has_value());
    EXPECT_EQ(ask->point, story.rows[stop].knobs);
    EXPECT_EQ(ask->why, story.whys[stop]);
  }
}

TEST(AutoSearch, AsksTheSameUntilItIsTold) {
  const auto search = auto_search(over(kCaseA));
  const std::optional<Ask> first = search->next(), second = search->next();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->point, second->point);
}

}  // namespace
}  // namespace stoker::tune
