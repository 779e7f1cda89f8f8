#include "stoker/measure/answer.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/base/json.h"
#include "stoker/measure/advice.h"
#include "stoker/measure/told_job_test.h"

namespace stoker::measure {
namespace {

TEST(Answer, SumsToTheRunningTimeAndNamesTheStage) {
  Teller tell;
  tell.loader(0, "train_loader");
  tell.train(0, 0, 0, 41, 14, 6, 20);
  tell.job.settle(true);
  const Answer got = answer(tell.job, machine(12));
  ASSERT_TRUE(got.verdict);
  EXPECT_EQ(got.verdict->bound, meter::Bound::fetch);
  EXPECT_NEAR(got.verdict->share, 0.35, 1e-9);
  EXPECT_EQ(got.steps.steps, 40u);  // the first starts things
  EXPECT_EQ(got.steps.running_ns(), 40 * 40 * kMs);
  ASSERT_TRUE(got.half_width);
  EXPECT_NEAR(*got.half_width, 0, 1e-9);
  EXPECT_NE(got.advice.at(0).find("train.py:41 (now 0 on 12 cores)"), std::string::npos) << got.advice.at(0);
}

// One worker that makes a batch in `build` ms and starts the next one at once if `busy`, else when it was delivered.
Answer delivered_late(std::int64_t build, std::int64_t deliver, bool busy) {
  Teller tell;
  tell.loader(0, "train_loader", 1);
  tell.iter(0, 0, 0, 0, "7");
  tell.worker(7, 0);
  const std::int64_t step = busy ? build : build + deliver;
  for (int i = 0; i < 40; ++i) {
    tell.batch(7, -1, i, step * i, step * i + build, step * i + build, build);
    tell.next(0, i, step * i + deliver + 1, step * i + build + deliver);
  }
  tell.end(0, step * 40 + deliver + 1, step * 40 + deliver + 1);
  tell.job.settle(true);
  return answer(tell.job, machine(8));
}

TEST(Answer, WorkersThatAreNeverIdleAreTheLimitHoweverLateBatchesArrive) {
  EXPECT_EQ(delivered_late(32, 28, true).verdict->bound, meter::Bound::prep);
  EXPECT_EQ(delivered_late(10, 28, false).verdict->bound, meter::Bound::handoff);
}

TEST(Answer, BlamesOtherProgramsForBatchesThatAreReadyButLate) {
  Teller tell;
  tell.loader(0, "train_loader", 1);
  tell.iter(0, 0, 0, 0, "7");
  for (int i = 0; i < 40; ++i) {
    tell.batch(7, -1, i, 40 * i, 40 * i + 8, 40 * i + 8, 4);
    tell.next(0, i, 40 * i + 5, 40 * i + 18);  // 10 after it was made
  }
  tell.end(0, 1600, 1600);
  tell.job.settle(true);
  Offer offer = machine(2);
  EXPECT_EQ(answer(tell.job, offer).advice.at(0).find("larger batches"), 0u);
  offer.cores_of_others = 1.7;
  const Answer got = answer(tell.job, offer);
  EXPECT_EQ(got.verdict->bound, meter::Bound::handoff);
  EXPECT_EQ(got.why.at(1), "other programs keep 1.7 of 2 cores busy: batches that are ready wait for a core");
  EXPECT_EQ(got.advice.at(0).find("a quieter machine"), 0u) << got.advice.at(0);
  EXPECT_EQ(got.advice.at(1).find("larger batches"), 0u) << got.advice.at(1);
}

// Batches of no work, made by the training thread. Collating takes 20 ms of each step of 100, `delay` of it without a
// core.
Answer collated_late(std::int64_t delay, double cores_of_others) {
  Teller tell;
  tell.loader(0, "train_loader");
  tell.iter(0, 0, 0, 0);
  for (int i = 0; i < 40; ++i) {
    tell.batch(1, 0, i, 100 * i, 100 * i, 100 * i + 20, 0, 0, delay);
    tell.next(0, i, 100 * i, 100 * i + 20);
  }
  tell.end(0, 4000, 4000);
  tell.job.settle(true);
  Offer offer = machine(2);
  offer.cores_of_others = cores_of_others;
  return answer(tell.job, offer);
}

TEST(Answer, BlamesOtherProgramsForACollateThatHadNoCore) {
  const Answer got = collated_late(20, 1.9);
  EXPECT_EQ(got.verdict->bound, meter::Bound::handoff);
  EXPECT_EQ(got.why,
            std::vector<std::string>{"`default_collate` takes 0 ms per batch to put 4 samples together, and is "
                                     "ready without a core for 20 ms more: other programs keep 1.9 of 2 cores "
                                     "busy"});
  EXPECT_EQ(got.advice, std::vector<std::string>{kQuieterMachine}) << "neither a worker nor another collate_fn";
  EXPECT_EQ(to_json(got)["loaders"][0]["workers"]["collate_delay_ms_per_batch"], 20.0);
}

TEST(Answer, BlamesTheCollateForItsOwnTimeOnly) {
  const Answer quiet = collated_late(0, 0);
  EXPECT_EQ(quiet.why, std::vector<std::string>{"`default_collate` takes 20 ms per batch to put 4 samples together"});
  EXPECT_EQ(quiet.advice.at(0).find("a cheaper collate_fn at train.py:41"), 0u) << quiet.advice.at(0);
  const Answer half = collated_late(8, 1.2);
  EXPECT_EQ(half.why.at(0).find("`default_collate` takes 12 ms per batch"), 0u) << half.why.at(0);
  EXPECT_EQ(half.advice.at(0).find("a cheaper collate_fn"), 0u) << half.advice.at(0);
  EXPECT_EQ(half.advice.at(1), kQuieterMachine);
}

TEST(Answer, BoundsTheDelayOfCollatingByTheTimeItTook) {
  const Answer got = collated_late(64, 1.9);
  EXPECT_EQ(got.loaders.at(0).made.collate_delay_ns, 40 * 20 * kMs);
}

TEST(Answer, SuggestsNoWorkersWhereHandingOverCostsMoreThanTheWork) {
  Teller tell;  // 1 ms of work for each batch, which then comes 10 ms late
  tell.loader(0, "train_loader", 1);
  tell.iter(0, 0, 0, 0, "7");
  for (int i = 0; i < 40; ++i) {
    tell.batch(7, -1, i, 40 * i, 40 * i + 1, 40 * i + 1, 1);
    tell.next(0, i, 40 * i + 1, 40 * i + 11);
  }
  tell.end(0, 1600, 1600);
  tell.job.settle(true);
  const Answer got = answer(tell.job, machine(2));
  EXPECT_EQ(got.verdict->bound, meter::Bound::handoff);
  EXPECT_EQ(got.advice.at(0),
            "num_workers=0 at train.py:41: a batch is made in 1 ms, and takes 10 ms to come from a worker");
}

TEST(Answer, SuggestsAWorkerForTheHandOffOnlyWhereBatchesArePinned) {
  for (const bool pins : {false, true}) {
    Teller tell;  // the training thread makes a batch in no time, and needs 20 ms to give it to the loop
    tell.job.add(1, fmt::format(R"({{"k":"loader","i":0,"num_workers":0,"batch_size":4,"pin_memory":{}}})", pins));
    tell.iter(0, 0, 0, 0);
    for (int i = 0; i < 40; ++i) {
      tell.batch(1, 0, i, 100 * i, 100 * i, 100 * i, 0);
      tell.next(0, i, 100 * i, 100 * i + 20);
    }
    tell.end(0, 4000, 4000);
    tell.job.settle(true);
    const Answer got = answer(tell.job, machine(2));
    EXPECT_EQ(got.verdict->bound, meter::Bound::handoff);
    EXPECT_EQ(got.advice.at(0).find("num_workers=1") == 0, pins) << got.advice.at(0);
  }
}

TEST(Answer, TwiceTheWorkersAreNeverMoreThanTwiceAsFastAndOthersTakeCores) {
  Teller tell;  // 30 ms of computing for each batch, which then comes 10 ms late
  tell.loader(0, "train_loader", 1);
  tell.iter(0, 0, 0, 0, "7");
  tell.worker(7, 0);
  for (int i = 0; i < 40; ++i) {
    tell.batch(7, -1, i, 40 * i, 40 * i + 30, 40 * i + 30, 30);
    tell.next(0, i, 40 * i + 1, 40 * i + 40);
  }
  tell.end(0, 1600, 1600);
  tell.job.settle(true);
  Offer offer = machine(2);
  EXPECT_NE(answer(tell.job, offer).advice.at(0).find("num_workers=2 at train.py:41 (now 1 on 2 cores): about 2.0x"),
            std::string::npos)
      << answer(tell.job, offer).advice.at(0);
  offer.cores_of_others = 1;
  for (const std::string& advice : answer(tell.job, offer).advice)
    EXPECT_EQ(advice.find("num_workers=2"), std::string::npos) << advice;
}

TEST(Answer, SuggestsAWorkerThoughOtherProgramsHoldTheCores) {
  Teller tell;  // 20 ms of CPU and 10 without a core for each batch, made by the training thread; a step of 60
  tell.loader(0, "train_loader");
  tell.iter(0, 0, 0, 0);
  for (int i = 0; i < 40; ++i) {
    tell.batch(1, 0, i, 90 * i, 90 * i + 30, 90 * i + 30, 20, 10);
    tell.next(0, i, 90 * i, 90 * i + 30);
  }
  tell.end(0, 3600, 3600);
  tell.job.settle(true);
  Offer offer = machine(2);
  offer.cores_of_others = 1.2;
  const Answer got = answer(tell.job, offer);
  EXPECT_EQ(got.verdict->bound, meter::Bound::prep);
  EXPECT_EQ(
      got.advice.at(0).find("num_workers=1 at train.py:41 (now 0 on 2 cores, other programs hold 1.2): about 1.5x"), 0u)
      << got.advice.at(0);
  EXPECT_EQ(got.advice.at(1).find("a quieter machine"), 0u) << got.advice.at(1);
}

// Batches that had a core for a third of the time, made by a worker or (0) by the training thread.
Answer crowded(int workers, int threads) {
  Teller tell;
  tell.loader(0, "train_loader", workers);
  tell.iter(0, 0, 0, 0, workers > 0 ? "7" : "");
  if (workers > 0) tell.worker(7, 0);
  for (int i = 0; i < 40; ++i) {
    tell.batch(workers > 0 ? 7 : 1, workers > 0 ? -1 : 0, i, 40 * i, 40 * i + 30, 40 * i + 30, 10, 20);
    tell.next(0, i, 40 * i, 40 * i + 30);
  }
  tell.job.add(1, fmt::format(R"({{"k":"described","n":0,"threads":{}}})", threads));
  tell.end(0, 1600, 1600);
  tell.job.settle(true);
  return answer(tell.job, machine(2));
}

TEST(Answer, SpeaksOfWorkersAndComputeThreadsOnlyWhereThereAreAny) {
  const auto advises_fewer_threads = [](const Answer& got) {
    return std::any_of(got.advice.begin(), got.advice.end(), [](const std::string& advice) {
      return advice.find("torch.set_num_threads") != std::string::npos;
    });
  };
  const Answer none = crowded(0, 2);
  EXPECT_EQ(none.why.at(1),
            "the loading in the training process was ready but had no core for 67 % of its time: other programs take "
            "the cores");
  EXPECT_FALSE(advises_fewer_threads(none)) << "the thread that loads is the one that computes";
  const Answer one = crowded(1, 2);
  EXPECT_EQ(one.why.at(1).find("the workers were ready but had no core for 67 % of their time"), 0u) << one.why.at(1);
  EXPECT_TRUE(advises_fewer_threads(one));
  EXPECT_FALSE(advises_fewer_threads(crowded(1, 1))) << "one is the fewest";
}

TEST(Answer, SuggestsNoMoreWorkersToALoaderThatChoosesThemItself) {
  for (const bool is_auto : {false, true}) {
    Teller tell;
    tell.job.add(
        1, fmt::format(R"({{"k":"loader","i":0,"kind":"stoker","num_workers":2,"workers_are_auto":{}}})", is_auto));
    tell.iter(0, 0, 0, 0);
    for (int i = 0; i < 40; ++i) {
      tell.job.add(1, fmt::format(R"({{"k":"next","n":0,"b":{},"t0":{},"t1":{},"fetch":0,"prep":{},"samples":4}})", i,
                                  40 * i * kMs, (40 * i + 30) * kMs, 30 * kMs));
    }
    tell.end(0, 1600, 1600);
    tell.job.settle(true);
    const Answer got = answer(tell.job, machine(2));
    EXPECT_EQ(got.verdict->bound, meter::Bound::prep);
    EXPECT_EQ(got.advice.at(0).find("more num_workers") == std::string::npos, is_auto) << got.advice.at(0);
  }
}

TEST(Answer, NamesTheRemedyWhereNoLoaderWasSeenAndTheFailureOfTheJobFirst) {
  Job job;
  Answer got = answer(job, machine(2));
  EXPECT_EQ(headline(got), "no loader was seen");
  EXPECT_NE(got.advice.at(0).find("with stoker.measure(batches) as m"), std::string::npos);
  got.failure = "the job ended with exit code 2";
  EXPECT_EQ(headline(got), "the job ended with exit code 2, before a loader was seen");
}

TEST(Answer, SaysFirstThatOthersHoldTheCoresOfAStep) {
  Teller tell;
  tell.loader(0, "train_loader");
  tell.train(0, 0, 0, 40, 0, 1, 60);
  tell.job.settle(true);
  Offer offer = machine(2);
  EXPECT_EQ(answer(tell.job, offer).advice.at(0), "nothing in the loader; the step is what to make faster");
  offer.cores_of_others = 1.6;
  const Answer got = answer(tell.job, offer);
  EXPECT_EQ(got.verdict->bound, meter::Bound::compute);
  EXPECT_EQ(got.why.at(0), "other programs keep 1.6 of 2 cores busy: the training step waits for a core");
  ASSERT_EQ(got.advice.size(), 1u);
  EXPECT_EQ(got.advice.at(0), "a quieter machine, or fewer programs beside the job; then measure again");
}

TEST(Answer, NamesThePartOfTheWaitAndNotTheWhole) {
  Teller tell;  // our own loader: 10 ms of waiting in each step of 40, 6 of them after the batch was ready
  tell.job.add(
      1, R"({"k":"loader","i":0,"kind":"stoker","type":"Loader","num_workers":2,"prefetch_factor":2,"batch_size":4})");
  tell.iter(0, 0, 0, 0);
  for (int i = 0; i < 40; ++i) {
    tell.job.add(1, fmt::format(R"({{"k":"next","n":0,"b":{},"t0":{},"t1":{},"g":1,"fetch":{},"prep":{},"samples":4}})",
                                i, 40 * i * kMs, (40 * i + 10) * kMs, kMs, 3 * kMs));
  }
  tell.end(0, 1600, 1600);
  tell.job.settle(true);
  const Answer got = answer(tell.job, machine(2));
  EXPECT_EQ(got.verdict->bound, meter::Bound::handoff);
  EXPECT_EQ(got.why.at(0), "batches were ready but took 6 ms per step to reach the loop");
  EXPECT_EQ(settings_line(got.loaders.at(0)), "Loader: num_workers=2, batch_size=4, prefetch_factor=2");
}

TEST(Answer, TellsWhatEachEpochAskedOfAStore) {
  const auto lines_of = [](int epochs, const char* cache) {
    Teller tell;
    tell.job.add(1, R"({"k":"loader","i":0,"kind":"stoker","type":"Loader","num_workers":2,"batch_size":4})");
    for (int epoch = 0; epoch < epochs; ++epoch) {
      tell.iter(0, epoch, 1000 * epoch, 1000 * epoch);
      for (int i = 0; i < 4; ++i) {
        tell.job.add(
            1, fmt::format(R"({{"k":"next","n":{},"b":{},"t0":{},"t1":{},"g":1,"fetch":1,"prep":1,"samples":4,)"
                           R"("store":{{"requests":{},"retries":1,"store_bytes":1048576{}}}}})",
                           epoch, i, (1000 * epoch + 40 * i) * kMs, (1000 * epoch + 40 * i + 10) * kMs, 400 + epoch,
                           cache));
      }
      tell.end(epoch, 1000 * epoch + 160, 1000 * epoch + 160);
    }
    tell.job.settle(true);
    return store_lines(answer(tell.job, machine(2)).loaders.at(0));
  };
  const char* const cache = R"(,"cache_hits":30,"cache_misses":10)";
  EXPECT_EQ(lines_of(2, ""), (std::vector<std::string>{"epoch 0: 1,600 requests, 4.0 MiB received, 4 retries",
                                                       "epoch 1: 1,604 requests, 4.0 MiB received, 4 retries"}));
  EXPECT_EQ(lines_of(1, cache),
            (std::vector<std::string>{
                "epoch 0: 1,600 requests, 4.0 MiB received, 4 retries, 120 of 160 reads from the cache"}));
  const std::vector<std::string> many = lines_of(9, "");
  ASSERT_EQ(many.size(), 5u);
  EXPECT_EQ(many[2], "epochs 2 to 6: 8,080 requests, 20.0 MiB received, 20 retries");
  EXPECT_TRUE(many[4].starts_with("epoch 8: "));
}

TEST(Answer, KnowsTheCpuTimeOfAStep) {
  Teller tell;
  tell.loader(0, "train_loader");
  tell.iter(0, 0, 0, 0);
  for (int i = 0; i < 20; ++i) {  // 50 ms of CPU in each step of 30, and 5 while it asks
    tell.job.add(1, fmt::format(R"({{"k":"next","n":0,"b":{},"t0":{},"t1":{},"g":1,"p0":{},"p1":{}}})", i, 40 * i * kMs,
                                (40 * i + 10) * kMs, 55 * i * kMs, (55 * i + 5) * kMs));
  }
  tell.job.settle(true);
  const auto total = to_json(answer(tell.job, machine(8)))["total"];
  EXPECT_NEAR(total["compute"]["cpu_ms_per_step"].get<double>(), 50, 1e-6);
}

TEST(Answer, DoesNotTakeThreadsThatSpinForPrep) {
  Teller tell;  // a sample computes for 5 ms and waits for 15, while a thread of BLAS spins
  tell.loader(0, "train_loader", 1);
  tell.iter(0, 0, 0, 0, "7");
  tell.worker(7, 0);
  for (int i = 0; i < 40; ++i) {
    tell.job.add(7, fmt::format(R"({{"k":"batch","w":7,"b":{},"r":{},"d":{},"s":{},"c":{},"e":{},"samples":1,"cpu":{},)"
                                R"("delay":0,"helpers":0,"spinners":{}}})",
                                i, 20 * i * kMs, 20 * (i + 1) * kMs, 20 * i * kMs, 20 * (i + 1) * kMs,
                                20 * (i + 1) * kMs, 5 * kMs, 15 * kMs));
    tell.next(0, i, 20 * i + 1, 20 * (i + 1));
  }
  tell.job.settle(true);
  const Answer got = answer(tell.job, machine(2));
  EXPECT_EQ(got.verdict->bound, meter::Bound::fetch);
  EXPECT_NEAR(static_cast<double>(got.loaders.at(0).made.prep_ns), 40 * 5 * kMs, kMs);
  EXPECT_EQ(got.notes.back().find("other threads of each worker used 15 ms of CPU per sample"), 0u) << got.notes.back();
}

TEST(Answer, TellsALoaderBoundJobThatALargerBatchDoesNotHelp) {
  Teller tell;  // case C: 16 s of loading and 2 s of computing, 1 worker on 12 cores
  tell.loader(0, "train_loader", 1, 1);
  tell.iter(0, 0, 0, 0, "7");
  for (int i = 0; i < 20; ++i) {
    tell.batch(7, -1, i, 16000 * i, 16000 * (i + 1), 16000 * (i + 1), 15000);
    tell.next(0, i, i == 0 ? 0 : 16000 * i + 2000, 16000 * (i + 1));
  }
  tell.end(0, 16000 * 20 + 2000, 16000 * 20 + 2000);
  tell.job.settle(true);
  Offer offer = machine(12);
  offer.memory_bytes = 170'000'000'000;
  offer.worker_bytes = 7'000'000'000;
  const Answer got = answer(tell.job, offer);
  EXPECT_EQ(got.verdict->bound, meter::Bound::prep);
  EXPECT_EQ(got.notes.at(0).find("a larger batch_size would not help"), 0u) << got.notes.at(0);
  EXPECT_NE(got.notes.at(0).find("activations"), std::string::npos);
  EXPECT_NE(got.advice.at(0).find("num_workers=9 at train.py:41 (now 1 on 12 cores): about 7.9x"), std::string::npos)
      << got.advice.at(0);
  EXPECT_NE(got.advice.at(0).find("9 workers hold about 58.7 GiB of the 158.3 GiB"), std::string::npos)
      << got.advice.at(0);
  for (const std::string& advice : got.advice) EXPECT_EQ(advice.find("batch_size"), std::string::npos) << advice;
}

TEST(Answer, SaysNothingOfLargerBatchesWhereTheStepTakesMostOfTheTime) {
  for (const int compute : {15, 40, 180}) {  // beside 20 ms of prep
    Teller tell;
    tell.loader(0, "train_loader");
    tell.train(0, 0, 0, 40, 0, 20, compute);
    tell.job.settle(true);
    const Answer got = answer(tell.job, machine(2));
    EXPECT_EQ(got.verdict->bound, meter::Bound::prep);
    const bool said = !got.notes.empty() && got.notes.at(0).find("a larger batch_size would not help") == 0;
    EXPECT_EQ(said, compute == 15) << compute;
  }
}

TEST(Answer, SaysThatTheSlowStoreExplainsTheFirstEpochOnly) {
  Teller tell;  // case E
  tell.loader(0, "train_loader");
  tell.train(0, 0, 0, 20, 400, 100, 20);
  tell.train(0, 1, 20000, 20, 0, 100, 20);
  tell.train(0, 2, 40000, 20, 0, 100, 20);
  tell.job.settle(true);
  const Answer got = answer(tell.job, machine(8));
  std::string notes;
  for (const std::string& note : got.notes) notes += note + "\n";
  EXPECT_NE(notes.find("epoch 0 was fetch_bound"), std::string::npos) << notes;
  EXPECT_NE(notes.find("later ones are prep_bound"), std::string::npos) << notes;
  EXPECT_NE(notes.find("would help the first epoch only"), std::string::npos) << notes;
}

// Case A: `steps` steps of `each` ms served from a queue that 8 workers filled beforehand; each batch takes them 320
// ms.
Answer burst(int steps, std::int64_t from = 2000, std::int64_t each = 10) {
  Teller tell;
  tell.loader(0, "train_loader", 8, 4);
  tell.iter(0, 0, 0, 0, "10,11,12,13,14,15,16,17");
  for (int w = 0; w < 8; ++w) {
    tell.worker(10 + w, 1);
    for (int k = 0; k < 4; ++k) tell.batch(10 + w, -1, 8 * k + w, 320 * k, 320 * (k + 1), 320 * (k + 1), 0);
  }
  for (int i = 0; i < steps; ++i) tell.next(0, i, from + each * i, from + each * i);
  tell.end(0, from + each * steps, from + each * steps);
  tell.job.settle(true);
  return answer(tell.job, machine(32));
}

TEST(Answer, CorrectsAShortWindowForTheQueue) {
  const Answer got = burst(25);
  ASSERT_TRUE(got.verdict);
  EXPECT_EQ(got.verdict->bound, meter::Bound::fetch);  // not compute_bound, although nothing waited
  const LoaderAnswer& loader = got.loaders.at(0);
  ASSERT_TRUE(loader.steady);
  EXPECT_NEAR(loader.steady->step_ns, 40 * kMs, kMs);
  EXPECT_LT(loader.queue_change, -20);
  EXPECT_LT(loader.corrected_samples_per_s, 0.1 * loader.samples_per_s);
  EXPECT_EQ(got.notes.at(0).find("corrected for the queue"), 0u) << got.notes.at(0);
}

TEST(Answer, TellsInWordsHowTheQueueChanged) {
  const auto note = [](int steps, std::int64_t from) { return burst(steps, from, 2).notes.at(0); };
  // The fourth batch of each worker is there at 1280.
  EXPECT_NE(note(6, 1300).find("beforehand, and the queue shrank by 4 batches meanwhile; "), std::string::npos)
      << note(6, 1300);
  EXPECT_NE(note(8, 1270).find("beforehand, and the queue grew by 2 batches meanwhile; "), std::string::npos)
      << note(8, 1270);
  EXPECT_NE(note(9, 1270).find("beforehand, and the queue grew by 1 batch meanwhile; "), std::string::npos)
      << note(9, 1270);
  EXPECT_NE(note(10, 1270).find("beforehand, and the queue is as long as before; "), std::string::npos)
      << note(10, 1270);
}

TEST(Answer, RefusesAVerdictOnTwoSteps) {
  const Answer got = burst(2);
  EXPECT_FALSE(got.verdict);
  EXPECT_EQ(headline(got), "no verdict: too few steps");
  EXPECT_NE(got.notes.at(0).find("run at least 64 steps"), std::string::npos) << got.notes.at(0);
}

TEST(Answer, NamesTheRankThatWaitsMost) {
  Teller tell;
  for (int pid : {1, 2}) {
    tell.job.add(pid, fmt::format(R"({{"k":"process","rank":{}}})", pid - 1));
    tell.loader(0, "train_loader", 0, 2, pid);
    tell.train(0, 0, 0, 20, pid == 2 ? 30 : 1, 0, pid == 2 ? 10 : 39, true, pid);
  }
  tell.job.settle(true);
  const Answer got = answer(tell.job, machine(8));
  EXPECT_EQ(got.slowest_rank, 1);
  EXPECT_EQ(got.ranks, 2u);
  EXPECT_EQ(got.verdict->bound, meter::Bound::fetch);
  EXPECT_NEAR(got.verdict->share, 0.75, 0.01);
  EXPECT_EQ(
      got.notes.back(),
      "the figures are of rank 1 alone, which waits most for its own loader; the job has 2 ranks, and they wait for "
      "it where they step together");
}

TEST(Answer, TakesTwoLoadersOfOneLoopTogether) {
  Teller tell;
  tell.loader(0, "a");
  tell.loader(1, "b");
  tell.iter(0, 0, 0, 0);
  tell.iter(1, 1, 0, 0);
  for (int i = 0; i < 20; ++i) {
    const std::int64_t at = 50 * i;
    tell.batch(1, 0, i, at, at + 30, at + 30, 30);
    tell.next(0, i, at, at + 30);
    tell.batch(1, 1, i, at + 30, at + 31, at + 31, 1);
    tell.next(1, i, at + 30, at + 31);
  }
  tell.end(0, 1000, 1000);
  tell.job.settle(true);
  const Answer got = answer(tell.job, machine(8));
  EXPECT_EQ(got.verdict->bound, meter::Bound::prep);
  EXPECT_NEAR(got.verdict->share, 0.62, 0.03);
  EXPECT_EQ(got.loaders[*got.main].facts.name, "a");
}

TEST(Answer, UsesTheDevicesClockWhereThereIsOne) {
  Teller tell;  // the host waits 30 ms for each batch, but the device is busy with queued work for 25 of them
  tell.loader(0, "train_loader");
  tell.train(0, 0, 0, 40, 30, 0, 1);
  for (int i = 0; i < 40; ++i)
    tell.job.add(1, fmt::format(R"({{"k":"device","n":0,"b":{},"wait":{},"work":{}}})", i, 5 * kMs, 26 * kMs));
  tell.job.settle(true);
  const Answer got = answer(tell.job, machine(8));
  EXPECT_TRUE(got.loaders.at(0).device_timed);
  EXPECT_NEAR(got.verdict->share, 5.0 / 31, 0.01);
}

TEST(Answer, TakesCopiesToTheDeviceOutOfCompute) {
  Teller tell;
  tell.loader(0, "train_loader");
  tell.train(0, 0, 0, 40, 30, 0, 1);
  EXPECT_EQ(to_json(answer(tell.job, machine(8)))["total"]["h2d"], nullptr);  // nobody told
  for (int i = 0; i < 40; ++i)
    tell.job.add(1, fmt::format(R"({{"k":"device","n":0,"b":{},"wait":{},"work":{},"h2d":{},"copies":2}})", i, 2 * kMs,
                                26 * kMs, 6 * kMs));
  tell.job.settle(true);
  const Answer got = answer(tell.job, machine(8));
  const auto total = to_json(got)["total"];
  EXPECT_NEAR(total["compute"]["ms_per_step"].get<double>(), 20, 1e-6);
  EXPECT_NEAR(total["h2d"]["ms_per_step"].get<double>(), 6, 1e-6);
  EXPECT_NEAR(total["step_ms"].get<double>(), 28, 1e-6);
  EXPECT_NE(step_line(got.steps).find("compute 20.00 + h2d 6.00 + wait 2.00"), std::string::npos);
  EXPECT_EQ(got.advice.back().find("pin_memory=True at train.py:41"), 0u) << got.advice.back();
}

TEST(Answer, NamesTheArithmeticOfTheJob) {
  Teller tell;
  tell.job.add(1, R"({"k":"installed","early":1})");
  tell.loader(0, "train_loader");
  tell.iter(0, 0, 0, 0);
  tell.job.add(1, R"({"k":"described","n":0,"float32_matmul_precision":"highest","channels_last":true,)"
                  R"("cuda":{"name":"Fake 1","tf32_matmul":false}})");
  for (int i = 0; i < 20; ++i) tell.next(0, i, 30 * i, 30 * i);
  tell.end(0, 600, 600);
  tell.job.settle(true);
  Answer got = answer(tell.job, machine(8));
  EXPECT_EQ(arithmetic_line(got.loaders.at(0)),
            "Fake 1: autocast off, TF32 off, float32_matmul_precision highest, batches channels_last");
  EXPECT_EQ(got.advice.back().find("torch.autocast, or"), 0u);

  tell.job.add(1, R"({"k":"autocast","device":"cuda","dtype":"bfloat16"})");
  tell.job.add(1, R"({"k":"channels_last"})");
  got = answer(tell.job, machine(8));
  EXPECT_EQ(
      arithmetic_line(got.loaders.at(0)),
      "Fake 1: autocast bfloat16 (cuda), TF32 off, float32_matmul_precision highest, batches channels_last, model "
      "channels_last");
  EXPECT_NE(got.advice.back().find("nothing in the loader"), std::string::npos);
}

TEST(Answer, WithoutALoaderSaysWhy) {
  Job job;
  EXPECT_EQ(headline(answer(job, {})), "no loader was seen");
  job.add(1, R"({"k":"process","rank":-1})");
  EXPECT_EQ(answer(job, {}).why.at(0), "torch was imported, but no DataLoader was iterated");
}

TEST(Answer, EpochsAreATableWithTheirIterationsPerSecond) {
  Teller tell;  // epoch 0 waits for a far store, the later ones compute
  tell.loader(0, "train_loader");
  tell.train(0, 0, 0, 10, 900, 0, 100);
  EXPECT_TRUE(epoch_table(answer_for(tell.run())).empty()) << "one epoch is no table";
  tell.train(0, 1, 10'000, 10, 0, 10, 190);
  tell.train(0, 2, 12'000, 10, 0, 10, 190);
  const auto rows = epoch_table(answer_for(tell.run()));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0], (std::vector<std::string>{"epoch", "steps", "it/s", "samples/s", "time", "waiting", "verdict"}));
  EXPECT_EQ(rows[1][0], "0");
  EXPECT_EQ(rows[1][2], "1.00");
  EXPECT_EQ(rows[1][5], "90 %");
  EXPECT_EQ(rows[1][6], "fetch_bound 90 %");
  EXPECT_EQ(rows[2][2], "5.00");
  EXPECT_EQ(rows[2][6].find("prep_bound 5 %"), 0u) << rows[2][6];
  for (int epoch = 3; epoch < 20; ++epoch) tell.train(0, epoch, 14'000 + 2'000 * (epoch - 3), 10, 0, 10, 190);
  const auto many = epoch_table(answer_for(tell.run()));
  ASSERT_EQ(many.size(), 10u);
  EXPECT_EQ(many[5][0], "4-15");
  EXPECT_EQ(many.back()[0], "19");
}

}  // namespace
}  // namespace stoker::measure
