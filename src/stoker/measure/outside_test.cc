#include "stoker/measure/outside.h"

#include <gtest/gtest.h>

namespace stoker::measure {
namespace {

// A job (pid 10) with workers that each spent `cpu` of 10 s computing.
HostFacts job(int workers, double cpu, double delay = 0, double disk_wait = 0) {
  HostFacts facts;
  facts.seconds = 10;
  facts.cores = 12;
  ProcessFacts main;
  main.pid = 10;
  main.name = "python";
  main.seconds = 10;
  facts.processes.push_back(main);
  for (int i = 0; i < workers; ++i) {
    ProcessFacts worker = main;
    worker.pid = 11 + i;
    worker.name = "pt_data_worker";
    worker.cpu_s = 10 * cpu;
    worker.delay_s = 10 * delay;
    worker.disk_wait_share = disk_wait;
    facts.processes.push_back(worker);
  }
  mark_workers(facts, 10);
  return facts;
}

TEST(Outside, BusyWorkersAreTheLimitAndMoreOfThemHelp) {
  const OutsideAnswer answer = outside_answer(job(1, 0.95), std::nullopt);
  EXPECT_EQ(answer.headline.find("prep_bound (io_bound), most likely"), 0u);
  EXPECT_EQ(answer.advice.at(0), "more workers: num_workers=12 (now 1)");
  EXPECT_EQ(answer.notes.at(0).find("a larger batch_size would not help"), 0u);
  EXPECT_NE(answer.notes.back().find("only a launch under `stoker measure` can tell"), std::string::npos);
}

TEST(Outside, SuggestsNoMoreWorkersThanCoresAreFree) {
  HostFacts facts = job(1, 0.29, 0.75);
  facts.cores = 2;
  facts.cores_used = 0.3;
  facts.cores_of_others = 1.7;
  const OutsideAnswer answer = outside_answer(facts, std::nullopt);
  EXPECT_EQ(answer.headline.find("prep_bound"), 0u);
  for (const std::string& advice : answer.advice) EXPECT_EQ(advice.find("more worker"), std::string::npos) << advice;
  EXPECT_EQ(answer.advice.at(0).find("a quieter machine"), 0u) << answer.advice.at(0);
  EXPECT_EQ(answer.why.at(1), "other programs keep 1.7 of 2 cores busy: the workers wait for a core");
}

TEST(Outside, SharesOfTheWorkersTimeComeToNoMoreThanAll) {
  const OutsideAnswer answer = outside_answer(job(1, 0.29, 0.75), std::nullopt);
  EXPECT_LE(answer.worker_cpu + answer.worker_delay + answer.worker_disk_wait, 1 + 1e-9);
  EXPECT_EQ(answer.why.at(0),
            "1 worker: 28 % of its time computing, 72 % ready without a core, 0 % in reads from a disk");
  EXPECT_EQ(outside_answer(job(4, 0.335, 0.335, 0.33), std::nullopt).why.at(0),
            "4 workers: 34 % of their time computing, 34 % ready without a core, 32 % in reads from a disk");
}

TEST(Outside, SaysWhatItCannotTell) {
  EXPECT_EQ(outside_answer(job(4, 0.1), std::nullopt).headline.find("the workers rest most of the time"), 0u);
  EXPECT_EQ(outside_answer(job(0, 0), std::nullopt).headline.find("no worker processes"), 0u);
  EXPECT_EQ(outside_answer(job(4, 0.1, 0, 0.6), std::nullopt).headline.find("fetch_bound"), 0u);
  EXPECT_NE(outside_answer(job(24, 0.5, 0.4), std::nullopt).advice.at(0).find("fewer workers: 24 share 12 cores"),
            std::string::npos);
}

TEST(Outside, WorkersThatWorkMoreThanHalfOfTheTimeDoNotRest) {
  for (const double cpu : {0.55, 0.75}) {
    const OutsideAnswer answer = outside_answer(job(4, cpu), std::nullopt);
    EXPECT_EQ(answer.headline.find("no clear limit: the workers are at work"), 0u) << answer.headline;
    EXPECT_EQ(answer.advice.at(0).find("one worker more (num_workers=5)"), 0u);
  }
  EXPECT_TRUE(outside_answer(job(12, 0.6), std::nullopt).advice.empty());  // no core is left
  EXPECT_EQ(outside_answer(job(4, 0.45), std::nullopt).headline.find("the workers rest most of the time"), 0u);
}

TEST(Outside, WorkersWithoutTorchsNameAreTheChildrenNamedAsTheJob) {
  HostFacts facts = job(2, 0.5);
  for (ProcessFacts& process : facts.processes) process.name = "python";
  mark_workers(facts, 10);
  EXPECT_FALSE(facts.processes[0].is_worker);
  EXPECT_TRUE(facts.processes[1].is_worker);
}

TEST(Outside, ReadsStepTimesAndTroubleFromTheLog) {
  const LogFacts log = parse_log(
      "epoch 0:  10%|#  | 12/100 [03:36<26:24, 18.02s/it]\repoch 0:  11%|#  | 13/100 [03:54<26:06, 18.01s/it]\n"
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\nfine\n");
  EXPECT_EQ(log.seen_steps, 2u);
  const OutsideAnswer answer = outside_answer(job(1, 0.9), log);
  EXPECT_EQ(answer.why.at(1), "the log says 18 s per step");
  EXPECT_EQ(answer.notes.at(1).find("in the log: torch.OutOfMemoryError"), 0u);
  EXPECT_EQ(outside_answer(job(1, 0.9), parse_log("Train step 10/4000 loss 0.5 18.0s")).why.at(1),
            "the log says 18 s per step; 4,000 steps: 20 h 0 min");
}

}  // namespace
}  // namespace stoker::measure
