#include "stoker/measure/job.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/base/json.h"
#include "stoker/measure/answer.h"
#include "stoker/measure/told_job_test.h"

namespace stoker::measure {
namespace {

TEST(Job, ChargesAWaitToWhatTheWorkerWasDoing) {
  Teller tell;
  tell.loader(0, "train_loader", 1);
  tell.iter(0, 0, 0, 10, "7");
  tell.worker(7, 20);                    // asked at 15: 5 until it lives
  tell.batch(7, -1, 0, 25, 65, 75, 30);  // 5 for the task, 40 for samples (30 computing), 10 collating
  tell.next(0, 0, 15, 90);               // and 15 to deliver
  const Waited& wait = tell.run().steps[0].wait;
  EXPECT_EQ(wait.start_ns, 15 * kMs);  // with the 10 in iter()
  EXPECT_EQ(wait.task_ns, 5 * kMs);
  EXPECT_EQ(wait.prep_ns, 30 * kMs);
  EXPECT_EQ(wait.fetch_ns, 10 * kMs);
  EXPECT_EQ(wait.collate_ns, 10 * kMs);
  EXPECT_EQ(wait.deliver_ns, 15 * kMs);
  EXPECT_EQ(wait.unknown_ns, 0);
}

TEST(Job, CountsTimeWithoutACoreAsPrep) {
  Teller tell;
  tell.loader(0, "train_loader", 1);
  tell.iter(0, 0, 0, 0, "7");
  tell.batch(7, -1, 0, 10, 50, 50, 10, 20);
  tell.next(0, 0, 10, 50);
  EXPECT_EQ(tell.run().steps[0].wait.prep_ns, 30 * kMs);
  EXPECT_EQ(tell.run().steps[0].wait.fetch_ns, 10 * kMs);
}

TEST(Job, BoundsTheDelayByTheTimeThatTheSamplesTook) {
  Teller tell;  // the kernel's counter also saw a wait for a core just before or after the samples
  tell.loader(0, "train_loader");
  tell.iter(0, 0, 0, 0);
  for (int i = 0; i < 20; ++i) {
    tell.batch(1, 0, i, 60 * i, 60 * i + 50, 60 * i + 50, 10, 64);
    tell.next(0, i, 60 * i, 60 * i + 50);
  }
  const Made& made = tell.run().made;
  EXPECT_EQ(made.prep_ns, 20 * 50 * kMs);
  EXPECT_EQ(made.delay_ns, 20 * 40 * kMs);
  EXPECT_EQ(answer(tell.job, machine(2)).why.at(0), "each sample takes 2.5 ms of CPU in `Photos`");
}

TEST(Job, FindsTheWorkersBatchWhicheverFileIsReadFirst) {
  Teller tell;
  tell.worker(7, 1);
  tell.batch(7, -1, 0, 2, 8, 8, 6);  // before anything was heard of the loader
  tell.loader(0, "train_loader", 1);
  tell.iter(0, 0, 0, 1, "7");
  tell.next(0, 0, 2, 8);
  EXPECT_EQ(tell.run().steps[0].wait.prep_ns, 6 * kMs);
}

TEST(Job, GivesPersistentWorkersTheirEpoch) {
  Teller tell;
  tell.loader(0, "train_loader", 1);
  tell.iter(0, 0, 0, 0, "7");
  tell.worker(7, 1);
  tell.batch(7, -1, 0, 2, 8, 8, 6);
  tell.next(0, 0, 2, 8);
  tell.end(0, 10, 10);
  tell.iter(0, 1, 20, 20, "7");
  tell.batch(7, -1, 0, 21, 31, 31, 0);
  tell.next(1, 0, 21, 31);
  EXPECT_EQ(tell.run().steps[1].epoch, 1u);
  EXPECT_EQ(tell.run().steps[1].wait.fetch_ns, 10 * kMs);
  EXPECT_EQ(tell.run().epochs, 2u);
}

TEST(Job, KeepsValidationOutOfTheComputeOfTraining) {
  Teller tell;
  tell.loader(0, "loader_a");
  tell.loader(1, "loader_b");
  tell.iter(0, 0, 0, 0);
  tell.batch(1, 0, 0, 0, 10, 10, 0);
  tell.next(0, 0, 0, 10);
  tell.iter(1, 1, 15, 15);  // 5 of compute, then validation in the middle of the epoch
  tell.batch(1, 1, 0, 15, 16, 16, 0);
  tell.next(1, 0, 15, 16, false);
  tell.end(1, 96, 96);
  tell.batch(1, 0, 1, 100, 110, 110, 0);
  tell.next(0, 1, 100, 110);
  const LoaderRun& training = tell.run(0);
  EXPECT_EQ(training.steps[0].compute_ns, 5 * kMs);
  EXPECT_FALSE(training.is_evaluation());
  EXPECT_TRUE(tell.run(1).is_evaluation());
  EXPECT_EQ(tell.run(1).steps[0].compute_ns, 80 * kMs);
  EXPECT_EQ(tell.run(1).between_ns, 4 * kMs);
}

TEST(Job, SaysWhatItDoesNotKnow) {
  Teller tell;
  tell.loader(0, "train_loader", 1);
  tell.iter(0, 0, 0, 0, "7");
  tell.next(0, 0, 0, 30);  // the worker's file never came
  EXPECT_EQ(tell.run().steps[0].wait.unknown_ns, 30 * kMs);
  tell.job.add(1, "{torn");
  EXPECT_EQ(tell.job.bad_lines(), 1u);
}

TEST(Trace, HasATrackPerWorkerAndAnArrowPerBatch) {
  Teller tell;
  tell.loader(0, "train_loader", 1);
  tell.iter(0, 0, 0, 0, "7");
  tell.worker(7, 0);
  for (int i = 0; i < 5; ++i) {
    tell.batch(7, -1, i, 10 * i, 10 * i + 8, 10 * i + 9, 8);
    tell.next(0, i, 10 * i + 2, 10 * i + 10);
  }
  tell.job.settle(true);
  const auto trace = Json::parse_or_null(trace_json(tell.job, 3));
  std::map<std::string, int> kinds;
  for (const auto& event : trace["traceEvents"]) ++kinds[event["ph"].get<std::string>()];
  EXPECT_EQ(kinds["s"], 3);  // the last three steps
  EXPECT_EQ(kinds["f"], 3);
  EXPECT_EQ(kinds["C"], 3);
  EXPECT_EQ(kinds["M"], 3);  // process, training, worker
  EXPECT_EQ(Json::parse_or_null(trace_json(Job()))["traceEvents"].size(), 0u);
}

}  // namespace
}  // namespace stoker::measure
