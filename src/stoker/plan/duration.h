// How long the big run takes, and whether a budget holds it. Pure arithmetic; from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "stoker/plan/measured.h"

namespace stoker::plan {

struct Job {
  double images = 0;                        // samples to train on, all epochs together
  std::optional<double> epoch_images = {};  // samples of one epoch
  double validation_s = 0;                  // per epoch; counts only where an epoch's size is known
  double checkpoint_s = 0;                  // of one checkpoint
  double checkpoint_every_s = 3600;         // of training
  std::optional<double> cold_per_s = {};    // the rate of epoch 0, from a cold disk or a far store
  std::optional<double> budget_days = {};

  double epochs() const noexcept { return epoch_images && *epoch_images > 0 ? images / *epoch_images : 1; }
};

enum class BudgetVerdict : std::uint8_t {
  fits,      // nine in ten
  likely,    // rather yes than no
  unlikely,  // rather no than yes
  over,      // not one in ten
};
std::string_view name(BudgetVerdict verdict) noexcept;

struct Duration {
  double p10 = 0, p50 = 0, p90 = 0;  // days; one in ten runs is shorter than p10, one in ten longer than p90
  RateSpread images_per_day = {};    // over the whole time, validation and checkpoints included
  // At P50, in days:
  std::optional<double> epoch0 = {};  // where its rate is known apart
  double training = 0;                // without epoch 0 where that is apart
  double validation = 0, checkpoints = 0;
  std::optional<BudgetVerdict> verdict = {};  // none: no budget
  double over_days = 0;                       // P50 less the budget; negative: to spare
};

Duration duration_of(const Job& job, const RateSpread& rate);
double days_of(const Job& job, double per_s);  // the same for one rate
// The rate whose P50 just meets the budget; none: no rate does (validation, checkpoints and epoch 0 alone are too
// long).
std::optional<double> needed_per_s(const Job& job);

}  // namespace stoker::plan
