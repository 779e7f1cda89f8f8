// A configuration that was measured, here or elsewhere, and how sure its rate is. Plain values; from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stoker/tune/row.h"

namespace stoker::plan {

// The mean rate of one run of a configuration.
struct Rate {
  double per_s = 0;                            // samples
  std::optional<double> standard_error = {};   // of that mean, from its blocks
  std::optional<double> block_variation = {};  // standard deviation of its blocks, as a share of the mean
};

struct Configuration {
  std::map<std::string, std::string> knobs = {};
  tune::Status status = tune::Status::ok;
  std::string error = {};
  std::vector<Rate> rates = {};  // one per run of it; none: it failed
  std::optional<double> step_ms = {}, data_ms = {}, compute_ms = {};
  std::string verdict = {};  // "prep_bound", ...; empty: not known
  std::optional<std::uint64_t> host_peak_bytes = {}, device_allocated_bytes = {}, device_reserved_bytes = {};

  bool ok() const noexcept { return !rates.empty(); }
};

// What the rate of the long run will be: one in ten falls below p10, one in ten above p90.
struct RateSpread {
  double p10 = 0, p50 = 0, p90 = 0;
  std::size_t runs = 0;
  bool assumed = false;  // no run says how much its blocks varied: the width is a guess
};

// From the rates of the blocks of one run; neighbouring blocks may be alike. Needs one at least.
Rate rate_of_blocks(std::span<const double> rates);
// From a mean and its 95 % interval, as results.csv has them.
Rate rate_of_interval(double per_s, std::optional<double> low, std::optional<double> high);
// The blocks' own noise, the spread between runs, and where there are few runs what runs usually differ by. Needs one.
RateSpread spread_of(std::span<const Rate> rates);

std::string text(const std::map<std::string, std::string>& knobs);  // "batch_size=64 num_workers=4"

}  // namespace stoker::plan
