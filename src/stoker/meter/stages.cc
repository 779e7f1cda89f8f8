#include "stoker/meter/stages.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stoker::meter {
namespace {

// Stages that are nearly equal hinder one another: the sharpness of the minimum. At 12 two equal stages give 94 % of
// either.
constexpr double kSharpness = 12;
constexpr double kAsGood = 0.98;       // of the best gain
constexpr double kWaitersPerCore = 4;  // workers that mostly wait need no core of their own
constexpr double kMostSuggested = 64;
constexpr double kFull = 0.8;     // of the cores: fewer leave room for all
constexpr double kFaster = 1.05;  // a gain below is not worth a change
// CPU time of the training thread to take a batch over from a worker process. The table of docs/background/measuring.md
// shows 0.7 ms for the smallest batches.
constexpr double kTakeOver_s = 0.5e-3;

double rate(double threads, double seconds) {
  return seconds > 0 ? threads / seconds : 0;
}

// The cores that `threads` of ours get. The kernel shares cores among groups (sessions, containers), and each group's
// weight is spread over the cores it runs on: more threads of ours bring more, but never more than our group's part.
double cores_for(const Stages& stages, double threads) {
  if (stages.rivals <= 0 || stages.cores <= 0) return threads;
  const double spread = std::min(threads, stages.cores);
  return spread / (1 + stages.rivals * spread / stages.cores);
}

// Workers of a torch DataLoader read and prepare in turn: rivals slow down only the part that needs a core.
double rate_of_waiting_workers(const Stages& stages, double workers) {
  const double busy = std::max(1.0, workers * stages.prep_s / std::max(1e-12, stages.prep_s + stages.fetch_s));
  return rate(workers, stages.fetch_s + stages.prep_s * busy / cores_for(stages, busy));
}

bool mostly_waits(const Stages& stages) {
  return stages.fetch_in_workers && stages.fetch_s > stages.prep_s;
}

}  // namespace

std::string_view name(Limit limit) noexcept {
  switch (limit) {
    case Limit::none:
      return "";
    case Limit::fetch:
      return "fetch";
    case Limit::prep:
      return "prep";
    case Limit::handoff:
      return "hand-off";
    case Limit::compute:
      return "compute";
    case Limit::cores:
      return "cores";
    case Limit::storage:
      return "storage";
  }
  return "";
}

bool Predicted::is_loader_bound() const noexcept {
  return limit == Limit::fetch || limit == Limit::prep || limit == Limit::cores || limit == Limit::storage;
}

Predicted predict(const Stages& stages) {
  Predicted predicted;
  const double ranks = std::max(1.0, stages.ranks);
  // The training thread computes and takes batches over; without workers it prepares them too.
  double own = stages.handoff_s, own_wait = 0;
  if (stages.workers <= 0) {
    own += stages.prep_s;
    if (stages.fetch_in_workers) own_wait = stages.fetch_s;
  } else if (stages.fetch_in_workers) {
    predicted.prep_per_s = rate_of_waiting_workers(stages, ranks * stages.workers);
  } else {
    predicted.prep_per_s = rate(cores_for(stages, ranks * stages.workers), stages.prep_s);
  }
  if (!stages.fetch_in_workers)
    predicted.fetch_per_s = rate(cores_for(stages, ranks * stages.io_threads), stages.fetch_s);
  const double consumer = stages.compute_s + own_wait + own * ranks / cores_for(stages, ranks);
  (stages.compute_s > 0 ? predicted.compute_per_s : predicted.handoff_per_s) = rate(ranks, consumer);
  if (stages.cores > 0) {
    const double cpu = stages.cpu_s > 0 ? stages.cpu_s : stages.prep_s;
    predicted.cores_per_s = rate(cores_for(stages, stages.cores), cpu);
  }
  predicted.storage_per_s = stages.storage_per_s;

  const std::pair<Limit, double> limits[] = {{mostly_waits(stages) ? Limit::fetch : Limit::prep, predicted.prep_per_s},
                                             {Limit::fetch, predicted.fetch_per_s},
                                             {Limit::compute, predicted.compute_per_s},
                                             {Limit::handoff, predicted.handoff_per_s},
                                             {Limit::cores, predicted.cores_per_s},
                                             {Limit::storage, predicted.storage_per_s}};
  double least = 0, sum = 0;
  for (const auto& [limit, per_s] : limits) {
    if (per_s <= 0) continue;
    if (least <= 0 || per_s < least * (1 - 1e-9)) {
      least = per_s;
      predicted.limit = limit;
    }
  }
  if (least <= 0) return predicted;
  for (const auto& [limit, per_s] : limits) {
    // Workers that fill every core reach the limit of the cores: that is one queue, not two.
    const bool is_second = (limit == Limit::cores && predicted.prep_per_s > 0 && predicted.prep_per_s <= per_s) ||
                           (limit == Limit::prep && predicted.cores_per_s > 0 && predicted.cores_per_s < per_s);
    if (per_s <= 0 || is_second) continue;
    sum += std::pow(least / per_s, kSharpness);
  }
  predicted.per_s = least * std::pow(sum, -1 / kSharpness);
  return predicted;
}

void take_out_rivals(Stages& stages, double used_cores) {
  if (used_cores <= 0 || stages.cores <= 0 || stages.cpu_s <= 0) return;
  const bool fetches = !stages.fetch_in_workers && stages.fetch_s / std::max(1.0, stages.io_threads) >
                                                       stages.prep_s / std::max(1.0, stages.workers);
  double& slowest = fetches ? stages.fetch_s : stages.prep_s;
  const double others = (fetches ? stages.prep_s : stages.fetch_s) + stages.handoff_s;
  const double threads = fetches ? stages.io_threads : std::max(1.0, stages.workers);
  slowest = std::clamp(stages.cpu_s - others, std::min(slowest, 0.3 * stages.cpu_s), slowest);
  const double spread = std::min(threads, stages.cores);
  stages.rivals = std::max(0.0, (spread / used_cores - 1) * stages.cores / spread);
}

Stages stages_of(const LoaderFigures& figures) {
  Stages stages;
  stages.batch_size = std::max(1.0, figures.batch_size);
  stages.workers = figures.num_workers;
  stages.fetch_in_workers = true;
  stages.cores = figures.cores;
  const auto per_sample = [&](double ms) { return std::max(0.0, ms) * 1e-3 / stages.batch_size; };
  const double delay_ms = figures.delay_ms + figures.collate_delay_ms;
  const double cpu_ms =
      std::max(0.0, figures.prep_ms - figures.delay_ms) + std::max(0.0, figures.collate_ms - figures.collate_delay_ms);
  stages.fetch_s = per_sample(figures.fetch_ms);
  stages.prep_s = per_sample(cpu_ms);
  stages.compute_s = per_sample(figures.compute_ms);
  if (figures.compute_cpu_ms > 0) stages.cpu_s = per_sample(cpu_ms + figures.compute_cpu_ms);
  if (figures.cores_of_others <= 0 || figures.cores <= 0) return stages;
  stages.free_cores = std::max(0.1, figures.cores - figures.cores_of_others);
  if (cpu_ms <= 0 || delay_ms <= 0) return stages;
  // Each thread that prepared had this share of a core when it wanted one.
  const double share = cpu_ms / (cpu_ms + delay_ms);
  const double threads = std::max(1.0, figures.num_workers), spread = std::min(threads, figures.cores);
  stages.rivals = std::max(0.0, (spread / (threads * share) - 1) * figures.cores / spread);
  return stages;
}

double cores_taken(double cores, double used, double used_by_others) {
  return used + used_by_others >= kFull * cores ? used_by_others : 0;
}

Stages stages_with_workers(const Stages& now, double workers) {
  Stages then = now;
  then.workers = workers;
  if (now.fetch_in_workers && now.workers <= 0 && workers > 0) {
    const double take_over_s = kTakeOver_s / std::max(1.0, now.batch_size);
    then.handoff_s += take_over_s;
    if (then.cpu_s > 0) then.cpu_s += take_over_s;
  }
  return then;
}

double gain_of_workers(const Stages& now, double workers) {
  const double before = predict(now).per_s;
  return before > 0 ? predict(stages_with_workers(now, workers)).per_s / before : 1;
}

double most_workers(const Stages& stages) {
  if (stages.cores <= 0) return std::max(1.0, stages.workers);
  if (mostly_waits(stages)) return std::clamp(std::floor(kWaitersPerCore * stages.cores), 1.0, kMostSuggested);
  double free = cores_for(stages, stages.cores);
  if (stages.free_cores > 0) free = std::min(free, stages.free_cores);
  return std::clamp(std::floor(free + 1e-9), 1.0, kMostSuggested);
}

int fewest_workers(const Stages& now) {
  const int most = static_cast<int>(most_workers(now));
  double best = 0;
  for (int workers = 1; workers <= most; ++workers) best = std::max(best, gain_of_workers(now, workers));
  for (int workers = 1; workers <= most; ++workers) {
    if (gain_of_workers(now, workers) >= kAsGood * best) return workers;
  }
  return most;
}

int suggested_workers(const Stages& now) {
  const int workers = fewest_workers(now);
  return workers > now.workers && gain_of_workers(now, workers) >= kFaster ? workers : 0;
}

}  // namespace stoker::meter
