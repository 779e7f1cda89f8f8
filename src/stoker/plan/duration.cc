#include "stoker/plan/duration.h"

#include <algorithm>
#include <cmath>

namespace stoker::plan {
namespace {

constexpr double kDay = 86400;

struct Parts {
  double epoch0 = 0, training = 0, validation = 0, checkpoints = 0;  // days
  double total() const { return epoch0 + training + validation + checkpoints; }
};

Parts parts_of(const Job& job, double per_s) {
  Parts parts;
  double images = job.images;
  if (job.cold_per_s && job.epoch_images) {
    const double first = std::min(images, *job.epoch_images);
    parts.epoch0 = first / std::min(per_s, *job.cold_per_s) / kDay;
    images -= first;
  }
  parts.training = images / per_s / kDay;
  if (job.epoch_images) parts.validation = job.validation_s * job.epochs() / kDay;
  if (job.checkpoint_s > 0 && job.checkpoint_every_s > 0) {
    parts.checkpoints = (parts.epoch0 + parts.training) / (job.checkpoint_every_s / kDay) * (job.checkpoint_s / kDay);
  }
  return parts;
}

}  // namespace

std::string_view name(BudgetVerdict verdict) noexcept {
  switch (verdict) {
    case BudgetVerdict::fits:
      return "fits";
    case BudgetVerdict::likely:
      return "likely";
    case BudgetVerdict::unlikely:
      return "unlikely";
    case BudgetVerdict::over:
      return "over";
  }
  return "over";
}

double days_of(const Job& job, double per_s) {
  return parts_of(job, per_s).total();
}

Duration duration_of(const Job& job, const RateSpread& rate) {
  const Parts middle = parts_of(job, rate.p50);
  Duration duration{.p10 = days_of(job, rate.p90), .p50 = middle.total(), .p90 = days_of(job, rate.p10)};
  duration.images_per_day = {job.images / duration.p90, job.images / duration.p50, job.images / duration.p10, rate.runs,
                             rate.assumed};
  if (job.cold_per_s && job.epoch_images) duration.epoch0 = middle.epoch0;
  duration.training = middle.training;
  duration.validation = middle.validation;
  duration.checkpoints = middle.checkpoints;
  if (!job.budget_days) return duration;
  const double budget = *job.budget_days;
  duration.over_days = duration.p50 - budget;
  duration.verdict = duration.p90 <= budget   ? BudgetVerdict::fits
                     : duration.p50 <= budget ? BudgetVerdict::likely
                     : duration.p10 <= budget ? BudgetVerdict::unlikely
                                              : BudgetVerdict::over;
  return duration;
}

std::optional<double> needed_per_s(const Job& job) {
  if (!job.budget_days || job.images <= 0) return std::nullopt;
  double low = 1e-12, high = 1e15;
  if (days_of(job, high) > *job.budget_days) return std::nullopt;
  for (int i = 0; i < 200 && high / low > 1 + 1e-12; ++i) {  // days fall as the rate grows
    const double middle = std::sqrt(low * high);
    (days_of(job, middle) > *job.budget_days ? low : high) = middle;
  }
  return high;
}

}  // namespace stoker::plan
