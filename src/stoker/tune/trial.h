// One trial: one configuration in a process of its own, watched until it has measured enough, ended, or has to be
// ended. Whatever it does (crash, hang, print without end, leave children behind), the caller gets a row. One thread.
//
// A program that knows of Stoker writes JSON lines to the descriptor in STOKER_REPORT_FD:
//   {"event": "hello"}
//   {"event": "settings", "values": {"img_size": 224}}: what the job uses beside its knobs, its own defaults too
//   {"event": "block", "steps": 5, "samples": 160, "seconds": 0.4, "warmup": false, and where known: "compute_s",
//    "h2d_s", "fetch_s", "prep_s", "handoff_s" or their sum "data_s", "ready_change" (batches), "queue_depth"}
//   {"event": "memory", "device_allocated_bytes": …, "device_reserved_bytes": …, "device_free_bytes": …}
//   {"event": "error", "type": "torch.OutOfMemoryError", "text": "…", and where known: "stage" ("import", "build",
//    "step"), "file", "line"; of our own loader, whose type is "stoker": "option" that the error concerns}
//   {"event": "done"}
// Any other program is measured by the hook of `measure`, or by rates that it prints.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/measure/answer.h"
#include "stoker/tune/classify.h"
#include "stoker/tune/row.h"

namespace stoker::tune {

enum class StepsFrom : std::uint8_t {
  reports,  // JSON lines
  hook,     // torch DataLoaders, from outside
  output,   // rates in what it prints: tqdm's it/s and s/it, "s/step", `rate_regex` or `log_pattern`
};

struct TrialOptions {
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;
  std::vector<std::string> source_keys;  // "builder.py:cpu_max_workers": the hook must find each of them
  std::string folder;                    // exists; gets stdout, stderr (the first and last of them) and steps.jsonl
  StepsFrom steps_from = StepsFrom::reports;
  bool with_hook = false;   // of reports: the hook tells by what the data was late, and what its workers could do
  std::string rate_regex;   // its first group is samples per second
  std::string log_pattern;  // with named groups, as RateReader takes it
  double batch_size = 0;    // of a step, where only steps are counted; 0: not known
  std::uint64_t warmup_steps = 5, bench_steps = 20;
  std::chrono::nanoseconds bench_time{0};  // measured for at least this time; a program that reports decides for itself
  std::chrono::nanoseconds deadline = std::chrono::minutes(10);   // 0: none
  std::chrono::nanoseconds heartbeat = std::chrono::seconds(60);  // silence after the first step; at least ten steps
  std::uint64_t memory_limit = 0;                                 // of all its processes together (PSS); 0: none
};

struct TrialResult {
  Row row;  // without number and knobs
  std::optional<Failure> failure;
  double seconds = 0;
  bool interrupted = false;                         // by the caller: the row counts for nothing
  std::size_t left_behind = 0;                      // processes it left, which were ended
  std::vector<measure::LoaderAnswer> loaders = {};  // that the hook saw, training first
  Json settings = nullptr;                          // that it reported; null: none
};

// `interrupted` is asked about ten times a second.
TrialResult run_trial(const TrialOptions& options, const std::function<bool()>& interrupted = {});

}  // namespace stoker::tune
