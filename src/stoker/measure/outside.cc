#include "stoker/measure/outside.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stoker/base/units.h"
#include "stoker/measure/advice.h"
#include "stoker/meter/stages.h"

namespace stoker::measure {
namespace {

constexpr double kBusy = 0.8, kHalf = 0.5, kCrowdedOutside = 0.2, kDiskWait = 0.2;

// In whole percent that never come to more than 100.
std::string spent_text(const OutsideAnswer& answer) {
  long left = 100;
  const auto part = [&](double share) {
    const long percent_text = std::min(left, std::lround(100 * share));
    left -= percent_text;
    return percent_text;
  };
  const long cpu = part(answer.worker_cpu), delay = part(answer.worker_delay), disk = part(answer.worker_disk_wait);
  return fmt::format("{} worker{}: {} % of {} time computing, {} % ready without a core, {} % in reads from a disk",
                     answer.workers, answer.workers == 1 ? "" : "s", cpu, answer.workers == 1 ? "its" : "their", delay,
                     disk);
}

// With the time of an epoch, where the log counts its steps: "18 s per step; 4,000 steps: 20 h".
std::string step_text(const LogFacts& log) {
  std::string text = fmt::format("the log says {:.3g} s per step", *log.step_s);
  if (log.of_steps) {
    const double seconds = *log.step_s * static_cast<double>(*log.of_steps);
    text += fmt::format("; {} steps: {}", format_count(*log.of_steps),
                        format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9))));
  }
  return text;
}

// As for jobs that were launched: no more than the cores that other programs leave.
double most_workers(const Offer& offer, const OutsideAnswer& answer) {
  meter::LoaderFigures figures;
  figures.num_workers = static_cast<double>(answer.workers);
  figures.prep_ms = answer.worker_cpu + answer.worker_delay;  // only their ratio counts
  figures.delay_ms = answer.worker_delay;
  figures.cores = offer.cores;
  figures.cores_of_others = offer.cores_of_others;
  return meter::most_workers(stages_of(figures));
}

}  // namespace

void mark_workers(HostFacts& facts, int pid) {
  const auto named = [](const ProcessFacts& process) { return process.name.starts_with("pt_data_worker"); };
  const bool any = std::any_of(facts.processes.begin(), facts.processes.end(), named);
  std::string name;
  for (const ProcessFacts& process : facts.processes) {
    if (process.pid == pid) name = process.name;
  }
  for (ProcessFacts& process : facts.processes) {
    process.is_worker = any ? named(process) : process.pid != pid && !name.empty() && process.name == name;
  }
}

OutsideAnswer outside_answer(const HostFacts& facts, const std::optional<LogFacts>& log) {
  OutsideAnswer answer;
  double cpu = 0, delay = 0, disk = 0, time = 0, growth = 0;
  for (const ProcessFacts& process : facts.processes) {
    if (!process.is_worker || process.seconds <= 0) continue;
    ++answer.workers;
    time += process.seconds;
    cpu += process.cpu_s;
    delay += process.delay_s.value_or(0);
    disk += process.disk_wait_share * process.seconds;
    growth = std::max(growth, process.growth_bytes_per_s.value_or(0));
  }
  if (time > 0) {
    // The clocks are read one after the other, and a worker may have threads: together they may exceed the time.
    const double all = std::max(time, cpu + delay + disk);
    answer.worker_cpu = cpu / all;
    answer.worker_delay = delay / all;
    answer.worker_disk_wait = disk / all;
  }
  const std::string spent = spent_text(answer);
  const Offer offer = offer_of(facts);
  const double most = most_workers(offer, answer);
  const bool has_room = static_cast<double>(answer.workers) < most;
  const double busy = answer.worker_cpu + answer.worker_delay;
  const bool device_full = !facts.accelerators.empty() && facts.accelerators[0].busy.value_or(0) > 0.9;
  if (answer.workers == 0) {
    answer.headline =
        "no worker processes: the loader runs inside the training process (num_workers=0), or the job is between "
        "epochs";
  } else if (busy >= kBusy) {
    answer.headline = "prep_bound (io_bound), most likely: the workers hardly ever rest";
    answer.why.push_back(spent);
    if (answer.worker_delay > kCrowdedOutside && static_cast<double>(answer.workers) > facts.cores) {
      answer.advice.push_back(fmt::format("fewer workers: {} share {:.3g} cores", answer.workers, facts.cores));
    } else if (has_room) {
      answer.advice.push_back(fmt::format("more workers: num_workers={:.0f} (now {})", most, answer.workers));
    } else {
      answer.advice.push_back(
          "a cheaper transform, smaller files, or stoker.Loader, which decodes in threads of one process");
    }
    answer.notes.push_back("a larger batch_size would not help while the workers are the limit");
  } else if (answer.worker_disk_wait > kDiskWait) {
    answer.headline = "fetch_bound (io_bound), most likely: the workers wait for the disk";
    answer.why.push_back(spent);
    answer.advice.push_back("move the data closer or into fewer, larger files: a local copy, or `stoker pack`");
  } else if (device_full) {
    answer.headline = "compute_bound, most likely: the accelerator is busy and the workers rest";
    answer.why.push_back(spent);
  } else if (busy >= kHalf) {
    answer.headline = fmt::format(
        "no clear limit: the workers are at work {} of the time, near what they can do; where samples or steps vary, "
        "the "
        "step waits now and then",
        percent_text(busy));
    answer.why.push_back(spent);
    if (has_room)
      answer.advice.push_back(
          fmt::format("one worker more (num_workers={}) would show whether they are the limit: steps get shorter then",
                      answer.workers + 1));
  } else {
    answer.headline =
        "the workers rest most of the time: the step is the limit, or they wait for a network; from outside these look "
        "the same";
    answer.why.push_back(spent);
  }
  if (answer.worker_delay > kCrowdedOutside && others_matter(offer)) {
    answer.why.push_back(others_text(offer) + ": the workers wait for a core");
    answer.advice.insert(answer.advice.begin(), kQuieterMachine);
  }
  if (growth > 100e6 / 3600)
    answer.notes.push_back(fmt::format("a worker's own memory grows by {} an hour",
                                       format_bytes(static_cast<std::uint64_t>(growth * 3600))));
  if (log) {
    if (log->step_s) answer.why.push_back(step_text(*log));
    for (const std::string& line : log->trouble) answer.notes.push_back("in the log: " + line);
    if (log->matched && *log->matched == 0) {
      answer.notes.push_back(fmt::format("no line of `{}` matches the pattern", log->path));
    } else if (!log->step_s) {
      answer.notes.push_back(
          fmt::format("`{}` names no time per step (as 1.4s/it, 2.1it/s, or `Train step 12 ... 18.0s`); a pattern can "
                      "say which it is",
                      log->path));
    }
  }
  answer.notes.push_back(fmt::format(
      "seen from outside for {}: how long each step waits, and for what, only a launch under `stoker measure` can tell",
      format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(facts.seconds * 1e9)))));
  return answer;
}

}  // namespace stoker::measure
