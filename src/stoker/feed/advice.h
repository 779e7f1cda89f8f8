// What limited a fed loader, and what to try next. Pure functions; from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "stoker/base/text.h"
#include "stoker/feed/feed.h"
#include "stoker/loader/options.h"
#include "stoker/meter/ledger.h"

namespace stoker::feed {

// A run and what it ran on, as far as the advice needs it.
struct FedRun {
  const Fed& fed;
  const loader::LoaderOptions& options;
  double cores = 0;               // that the machine gives
  std::uint64_t total_bytes = 0;  // of the data set
  bool is_warm = false;           // the page cache held the data
  bool decodes_jpeg = false;
  bool file_per_sample = false;  // not a pack, nor an array
};

meter::Verdict verdict_of(const Span& span);  // by the shares of the running time
std::string verdict_line(const Span& span);   // "prep_bound (io_bound) 61.2 %, severe: 2.50x faster if prep were free"

// Prep was the limit and yet far from all cores were used: the host may be busy with something else (not measured).
bool is_crowded(const FedRun& run);
// One sentence: what to try, given what limits the run.
Text next_step(const FedRun& run);

}  // namespace stoker::feed
