// Blocks of steps to one rate with its interval, and rates found in printed text. Pure; from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/measure/log.h"
#include "stoker/measure/user_regex.h"
#include "stoker/tune/row.h"

namespace stoker::tune {

struct Block {
  double steps = 0, samples = 0, seconds = 0;
  std::optional<double> compute_s{}, h2d_s{}, fetch_s{}, prep_s{}, handoff_s{};
  std::optional<double> data_s{};  // waiting for data, where it is not split
  double ready_change = 0;         // batches queued at its end, less those at its start
  std::optional<double> queue_depth{};
  bool is_warmup = false;
};

// What a program reported as {"event": "block", ...}; trial.h lists the keys. None: another event. A field that is not
// a number, or is negative where it cannot be, counts as absent.
std::optional<Block> block_of(const Json& json);

// Steady-state samples: subtract batches that were queued before the block, add those queued after it, capped by the
// step's own rate.
double steady_samples(const Block& block) noexcept;

// Rate, interval, times per step and verdict of `blocks`; needs one at least.
void fill_row(const std::vector<Block>& blocks, Row& row);

// Finds rates in a stream of text that comes in pieces. Lines end with \n or \r, as progress bars write them.
class RateReader {
 public:
  // `rate_regex`: its first group is samples per second. `log_pattern`: measure::LogPattern, with a group that is a
  // rate (samples_per_s, images_per_s) or the time of a step (step_s, step_ms, steps_per_s), which counts `batch_size`
  // samples. Both empty: tqdm's `it/s`, `s/it`, `s/step`, times `batch_size`. Throws Error(usage) if one is no regular
  // expression or has no such group.
  RateReader(const std::string& rate_regex, double batch_size, const std::string& log_pattern = "");

  void add(std::string_view text);
  const std::vector<double>& rates() const noexcept { return rates_; }

 private:
  void read_line();
  double rate_by_pattern(const std::string& line) const;  // 0: none

  std::optional<measure::UserRegex> own_;
  std::optional<measure::LogPattern> pattern_;
  double batch_size_;
  std::string line_;
  std::vector<double> rates_;
};

}  // namespace stoker::tune
