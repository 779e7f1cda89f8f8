// Blocks of steps to one rate with its interval, and rates found in printed text. Pure; from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/tune/row.h"

namespace stoker::tune {

struct Block {
  double steps = 0, samples = 0, seconds = 0;
  std::optional<double> compute_s{}, h2d_s{}, fetch_s{}, prep_s{}, handoff_s{};
  std::optional<double> data_s{};  // waiting for data, where it is not split
  double ready_change = 0;         // batches that lay ready at its end, less those at its start
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
  // `regex`: its first group is samples per second; empty: tqdm's `it/s`, `s/it`, `s/step`, times `batch_size`. Throws
  // Error(usage) if it is no regular expression or has no group.
  RateReader(const std::string& regex, double batch_size);

  void add(std::string_view text);
  const std::vector<double>& rates() const noexcept { return rates_; }

 private:
  void read_line();

  std::regex own_;
  bool has_own_ = false;
  double batch_size_;
  std::string line_;
  std::vector<double> rates_;
};

}  // namespace stoker::tune
