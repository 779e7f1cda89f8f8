// What `stoker load` found out, once, and its two renderings: text for people and JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/feed/advice.h"
#include "stoker/feed/bench_steps.h"
#include "stoker/feed/feed.h"
#include "stoker/feed/workload.h"
#include "stoker/transform/pass_times.h"

#include "terminal.h"

namespace stoker::cli {

using feed::verdict_line;
using feed::verdict_of;

struct LoadReport {
  // what was asked
  std::string address, kind, output;  // output: "uint8 [64, 3, 224, 224]"
  std::uint64_t size = 0, total_bytes = 0, classes = 0;
  loader::LoaderOptions options;
  std::string transform;
  std::vector<std::string> flags;  // as given, without those of batch size, workers and shuffling
  double step_ms = 0;              // 0: full speed
  std::optional<feed::Workload> workload;
  bool decodes_jpeg = false;
  bool decodes = false;          // samples are not rows as they are
  bool file_per_sample = false;  // not a pack, nor an array
  double cores = 0;
  // what happened
  std::string cache;             // "warm", "cold=data", "unknown", with a reason where there is one
  std::optional<double> drop_s;  // of --cold: how long dropping the files from the page cache took
  std::uint64_t first_epoch = 0;
  feed::Fed fed;
  std::vector<loader::SampleError> errors;
  bool explain = false;  // say how the operations ran
  std::string plan;      // them, in one line
  std::vector<transform::Pass> passes;
  std::vector<std::string> notes;       // why the figures may mislead, what was chosen
  std::string state_file, errors_file;  // written, or empty
  bool nothing_left = false;            // the state file said that everything was handed out
};

feed::FedRun fed_run(const LoadReport& report);  // borrows from it
// The shares of the running time as parts of a bar: compute, fetch, prep, hand-off, and other where it is seen.
std::vector<Part> time_parts(const feed::Span& span);

std::string to_text(const LoadReport& report, const Terminal& terminal);
// True and false, as people write them; only blocks need words.
Json shuffle_json(const dataset::Shuffle& shuffle);
Json to_json(const LoadReport& report);
Json to_json(const std::vector<loader::SampleError>& errors);

}  // namespace stoker::cli
