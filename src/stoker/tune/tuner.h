// Runs a search: asks it for points, runs a trial for each, keeps the rows, and stops when it is done, told to, or out
// of time. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "stoker/tune/run_folder.h"
#include "stoker/tune/search.h"
#include "stoker/tune/trial.h"

namespace stoker::tune {

struct TunerOptions {
  std::chrono::nanoseconds time_limit{0};  // of the search: a trial that runs then counts for nothing; 0: none
  // What to run for a point; `folder` is the trial's. May throw Error(usage) for a point that makes no sense.
  std::function<TrialOptions(const Point& point, const std::string& folder)> trial;
  std::function<bool()> interrupted;
  std::function<void(const Ask& ask, std::uint64_t trial)> begun;
  std::function<void(const Ask& ask, const Row& row, bool from_before)> ended;
};

enum class Finish : std::uint8_t { done, out_of_time, interrupted, user_error };

struct Tuned {
  Finish finish = Finish::done;
  std::optional<Failure> failure;  // user_error: it would repeat, so the search stopped
  std::string failed_trial;        // its folder
  double seconds = 0;
};

// Rows that the folder already has are told to the search instead of being run again.
Tuned run_search(Search& search, RunFolder& folder, const TunerOptions& options);

}  // namespace stoker::tune
