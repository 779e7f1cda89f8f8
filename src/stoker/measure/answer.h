// Why a measured job is slow: shares, verdict, and what to change, from what Job collected. Pure functions of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/measure/job.h"

namespace stoker::measure {

struct EpochAnswer {
  std::uint32_t epoch = 0;
  Steps steps;
  meter::Verdict verdict;
  Made made;
};

// A queue filled beforehand hides a slow loader in a short run: what the workers' own rate says of a long one.
struct SteadyState {
  double step_ns = 0;     // of the slower of the two, workers and training
  meter::WaitSplit wait;  // per step
  meter::Verdict verdict;
};

struct LoaderAnswer {
  int pid = 0, number = 0, rank = 0, world_size = 1;
  bool evaluation = false;
  LoaderFacts facts;
  std::optional<BatchFacts> batch;
  Arithmetic arithmetic;
  Steps steps;  // without the first (it starts the workers) and an unfinished last one
  std::uint64_t all_steps = 0;
  std::int64_t first_batch_ns = 0;        // from iter() to the first batch
  std::optional<meter::Verdict> verdict;  // none: too few steps
  std::optional<double> half_width;       // of the verdict's share, 95 %
  std::optional<SteadyState> steady;      // where the window was too short, and it matters
  bool short_window = false;              // fewer steps than twice the batches queued beforehand
  std::int64_t queue_change = 0;          // ready batches at the end less those at the start
  double samples_per_s = 0, corrected_samples_per_s = 0;
  double ready_mean = 0;
  bool device_timed = false;  // compute and wait by the device's clock
  std::vector<EpochAnswer> epochs;
  Made made;
  double start_share = 0;                       // of the running time: starting and stopping workers
  std::uint64_t pickle_ns = 0, sent_bytes = 0;  // per batch sent
  std::vector<SlowSample> slow;

  std::int64_t compute_threads() const noexcept { return batch ? batch->threads : 0; }  // of torch; 0: not known
};

// What the machine offers, for the advice. 0: not known.
struct Offer {
  double cores = 0;
  std::string cores_limited_by;
  double cores_of_others = 0;      // that other programs kept busy; 0 where cores were idle
  std::uint64_t memory_bytes = 0;  // that could still be used
  std::uint64_t worker_bytes = 0;  // private memory of one worker
  double worker_bytes_per_s = 0;   // by which it grows
  std::string data_file_system;    // under the opened data files
};

struct Answer {
  std::vector<LoaderAnswer> loaders;      // training first, then by running time
  std::optional<std::size_t> main;        // the one that the advice is about
  std::optional<meter::Verdict> verdict;  // of the training loaders of the slowest rank together
  std::optional<double> half_width;
  Steps steps;            // the same loaders
  int slowest_rank = -1;  // the one that the figures are of; -1: there is one rank only
  std::size_t ranks = 1;
  bool saw_torch = false;
  std::optional<StageLedger> stages;            // that the job names itself
  std::string failure;                          // "the job ended with exit code 2"; empty: it did not fail
  std::vector<std::string> why, advice, notes;  // sentences; the first of each is the weightiest
};

Answer answer(const Job& job, const Offer& offer);
LoaderAnswer answer_for(const LoaderRun& run);

std::string_view stage_name(meter::Bound bound) noexcept;  // "hand-off"
std::string headline(const Answer& answer);                // "prep_bound (io_bound) 61.2 % (+-2.0), severe: ..."
std::string step_line(const Steps& steps);                 // "41.2 ms = compute 16.0 + wait 25.2 (fetch ...)"
std::string settings_line(const LoaderAnswer& loader);     // "train_loader at train.py:41: num_workers=1, ..."
// "NVIDIA H100: autocast bfloat16, TF32 off, float32_matmul_precision highest, batches channels_last"; empty: not
// known.
std::string arithmetic_line(const LoaderAnswer& loader);
// What each epoch asked of a store: "epoch 0: 1,000 requests, 105 MiB received, 0 retries". One line for all the middle
// ones of many. Empty: no store was asked.
std::vector<std::string> store_lines(const LoaderAnswer& loader);
// A table with its head: each epoch's steps, it/s, samples/s, time, how much of it was waiting, and its verdict. One
// row for all the middle ones of many. Empty: fewer than two epochs.
std::vector<std::vector<std::string>> epoch_table(const LoaderAnswer& loader);
Json to_json(const Answer& answer);
std::string steps_csv(const Job& job);
// The steps as a trace for Perfetto or chrome://tracing: a track per training process and per worker, the ready batches
// as a counter, an arrow from each batch to its step. Of each loader the last `most_steps`.
std::string trace_json(const Job& job, std::size_t most_steps = 20'000);
std::string gzipped(std::string_view text);

}  // namespace stoker::measure
