#include "stoker/measure/answer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "stoker/measure/advice.h"
#include "stoker/meter/confidence.h"

namespace stoker::measure {
namespace {

constexpr std::uint64_t kFewestSteps = 3;
constexpr double kNeverIdle = 0.9;

std::int64_t part_of(const meter::WaitSplit& wait, meter::Bound bound) {
  switch (bound) {
    case meter::Bound::fetch:
      return wait.fetch_ns;
    case meter::Bound::prep:
      return wait.prep_ns;
    case meter::Bound::handoff:
      return wait.handoff_ns;
    case meter::Bound::compute:
      break;
  }
  return 0;
}

// The device's own clock, where it was read for nearly every step: what the host waited for may have been hidden by
// work that was still queued on the device.
bool use_device_clock(std::vector<Step>& steps) {
  const auto timed = static_cast<std::size_t>(std::count_if(
      steps.begin(), steps.end(), [](const Step& step) { return step.device_wait_ns && step.device_work_ns; }));
  if (steps.empty() || static_cast<double>(timed) < 0.8 * static_cast<double>(steps.size())) return false;
  std::erase_if(steps, [](const Step& step) { return !step.device_wait_ns || !step.device_work_ns; });
  for (Step& step : steps) {
    const double scale = static_cast<double>(*step.device_wait_ns) /
                         static_cast<double>(std::max<std::int64_t>(1, step.wait.total_ns()));
    Waited& wait = step.wait;
    for (std::int64_t* part : {&wait.start_ns, &wait.task_ns, &wait.fetch_ns, &wait.prep_ns, &wait.collate_ns,
                               &wait.deliver_ns, &wait.unknown_ns}) {
      *part = static_cast<std::int64_t>(static_cast<double>(*part) * scale);
    }
    step.compute_ns = *step.device_work_ns;
    if (!step.device_h2d_ns) continue;
    step.h2d_ns = std::clamp<std::int64_t>(*step.device_h2d_ns, 0, step.compute_ns);
    step.compute_ns -= *step.h2d_ns;
  }
  return true;
}

// Workers that were never idle are the limit: behind a slow hand-off they would have stood still with a full queue.
// What a finished batch then waited for (its worker's interpreter, busy with the next batch) is charged to what they
// did.
void charge_busy_workers(std::vector<Step>& steps, const LoaderRun& run) {
  std::map<std::uint32_t, Steps> epochs;
  for (const Step& step : steps) epochs[step.epoch].add(step);
  for (Step& step : steps) {
    const auto found = run.made_by_epoch.find(step.epoch);
    if (found == run.made_by_epoch.end()) continue;
    const Made& made = found->second;
    const double build = static_cast<double>(made.build_ns());
    const double offered =
        static_cast<double>(run.facts.num_workers) * static_cast<double>(epochs[step.epoch].running_ns());
    if (offered <= 0 || build < kNeverIdle * offered) continue;
    const std::int64_t late = std::exchange(step.wait.deliver_ns, 0) + std::exchange(step.wait.task_ns, 0);
    const auto part = [&](std::int64_t ns) {
      return static_cast<std::int64_t>(static_cast<double>(late) * static_cast<double>(ns) / build);
    };
    const std::int64_t fetch = part(made.fetch_ns), prep = part(made.prep_ns);
    step.wait.fetch_ns += fetch;
    step.wait.prep_ns += prep;
    step.wait.collate_ns += late - fetch - prep;
  }
}

std::optional<double> interval(const std::vector<Step>& steps, const LoaderFacts& facts, meter::Bound bound) {
  const std::size_t block = meter::block_steps(steps.size(), static_cast<std::size_t>(facts.queued()),
                                               static_cast<std::size_t>(std::max<std::int64_t>(0, facts.num_workers)));
  std::vector<double> shares;
  for (std::size_t at = 0; at + block <= steps.size(); at += block) {
    Steps sum;
    for (std::size_t i = at; i < at + block; ++i) sum.add(steps[i]);
    const double part =
        static_cast<double>(bound == meter::Bound::compute ? sum.work_ns() : part_of(sum.wait.split(), bound));
    shares.push_back(part / static_cast<double>(std::max<std::int64_t>(1, sum.running_ns())));
  }
  return meter::half_width(shares);
}

std::optional<SteadyState> steady_state(const LoaderAnswer& loader) {
  const double workers = static_cast<double>(loader.facts.num_workers);
  if (workers < 1 || loader.made.batches < static_cast<std::uint64_t>(workers) || loader.steps.steps == 0)
    return std::nullopt;
  const double n = static_cast<double>(loader.steps.steps), made = static_cast<double>(loader.made.batches);
  const double compute = static_cast<double>(loader.steps.work_ns()) / n;
  const double per_batch = static_cast<double>(loader.made.build_ns()) / made / workers;
  SteadyState state;
  state.step_ns = std::max(compute, per_batch);
  const double wait = state.step_ns - compute,
               build = static_cast<double>(std::max<std::int64_t>(1, loader.made.build_ns()));
  state.wait.fetch_ns = static_cast<std::int64_t>(wait * static_cast<double>(loader.made.fetch_ns) / build);
  state.wait.prep_ns = static_cast<std::int64_t>(wait * static_cast<double>(loader.made.prep_ns) / build);
  state.wait.handoff_ns = static_cast<std::int64_t>(wait * static_cast<double>(loader.made.collate_ns) / build);
  state.verdict = meter::judge(static_cast<std::int64_t>(compute), state.wait);
  return state;
}

}  // namespace

LoaderAnswer answer_for(const LoaderRun& run) {
  LoaderAnswer answer;
  answer.pid = run.pid;
  answer.number = run.number;
  answer.rank = run.rank;
  answer.world_size = run.world_size;
  answer.evaluation = run.is_evaluation();
  answer.facts = run.facts;
  answer.batch = run.batch;
  answer.made = run.made;
  answer.slow = run.slow;
  answer.all_steps = run.folded_steps + run.steps.size();
  if (run.sent > 0) {
    answer.pickle_ns = static_cast<std::uint64_t>(run.pickle_ns) / run.sent;
    answer.sent_bytes = run.sent_bytes / run.sent;
  }
  std::vector<Step> steps = run.steps;
  std::vector<Step> untimed;  // what they asked of stores counts
  if (!steps.empty() && steps.back().compute_ns == 0 && answer.all_steps > 1) {
    untimed.push_back(steps.back());
    steps.pop_back();
  }
  if (run.folded_steps == 0 && !steps.empty()) {
    answer.first_batch_ns = steps.front().wait.total_ns();
    if (steps.size() > 1) {
      untimed.push_back(steps.front());
      steps.erase(steps.begin());
    }
  }
  charge_busy_workers(steps, run);
  answer.device_timed = use_device_clock(steps);

  std::map<std::uint32_t, Steps> epochs = run.folded;
  for (const Step& step : steps) epochs[step.epoch].add(step);
  for (const Step& step : untimed) {
    if (const auto found = epochs.find(step.epoch); found != epochs.end()) found->second.store += step.store;
  }
  for (const auto& [epoch, sum] : epochs) {
    answer.steps.add(sum);
    const auto made = run.made_by_epoch.find(epoch);
    answer.epochs.push_back({epoch, sum, meter::judge(sum.work_ns(), sum.wait.split()),
                             made == run.made_by_epoch.end() ? Made{} : made->second});
  }
  const double seconds = static_cast<double>(std::max<std::int64_t>(1, answer.steps.running_ns())) * 1e-9;
  const double n = static_cast<double>(std::max<std::uint64_t>(1, answer.steps.steps));
  answer.samples_per_s = answer.corrected_samples_per_s = static_cast<double>(answer.steps.samples) / seconds;
  answer.start_share = static_cast<double>(answer.steps.wait.start_ns) * 1e-9 / seconds;
  if (!steps.empty()) {
    double ready = 0;
    for (const Step& step : steps) ready += static_cast<double>(step.ready);
    answer.ready_mean = ready / static_cast<double>(steps.size());
    answer.queue_change =
        static_cast<std::int64_t>(steps.back().ready) - static_cast<std::int64_t>(steps.front().ready);
    if (steps.front().epoch == steps.back().epoch)
      answer.corrected_samples_per_s *= std::max(0.0, n + static_cast<double>(answer.queue_change)) / n;
  }
  // Only of a torch DataLoader is known what its workers made beforehand.
  answer.short_window =
      run.facts.kind == LoaderKind::torch && answer.steps.steps < 2 * static_cast<std::uint64_t>(run.facts.queued());
  if (answer.steps.steps < kFewestSteps) return answer;
  answer.verdict = meter::judge(answer.steps.work_ns(), answer.steps.wait.split());
  answer.half_width = interval(steps, run.facts, answer.verdict->bound);
  if (answer.short_window) {
    answer.steady = steady_state(answer);
    const double seen = static_cast<double>(answer.steps.wait.total_ns()) /
                        static_cast<double>(std::max<std::int64_t>(1, answer.steps.running_ns()));
    const double expected =
        answer.steady ? static_cast<double>(answer.steady->wait.total_ns()) / std::max(1.0, answer.steady->step_ns) : 0;
    if (!answer.steady) {
      answer.verdict.reset();
    } else if (expected > seen + 0.05) {
      answer.verdict = answer.steady->verdict;
      answer.half_width.reset();
    } else {
      answer.steady.reset();
    }
  }
  return answer;
}

Answer answer(const Job& job, const Offer& offer) {
  Answer answer;
  answer.saw_torch = job.saw_torch();
  for (const auto& [key, run] : job.loaders()) {
    if (run.epochs == 0) continue;
    answer.loaders.push_back(answer_for(run));
    answer.loaders.back().arithmetic = job.arithmetic(run.pid);
  }
  std::stable_sort(answer.loaders.begin(), answer.loaders.end(), [](const LoaderAnswer& a, const LoaderAnswer& b) {
    if (a.evaluation != b.evaluation) return b.evaluation;
    return a.steps.running_ns() > b.steps.running_ns();
  });
  if (!job.spans().is_empty()) answer.stages = stage_ledger(job.spans(), offer.cores);
  if (answer.loaders.empty()) {
    advise(answer, offer);
    return answer;
  }
  // The slowest rank is the one that waits most for its own loader: the others then wait for it inside their step.
  const bool evaluation = answer.loaders.front().evaluation;
  std::map<int, Steps> ranks;
  for (const LoaderAnswer& loader : answer.loaders) {
    if (loader.evaluation == evaluation) ranks[loader.pid].add(loader.steps);
  }
  const auto share = [](const Steps& steps) {
    return static_cast<double>(steps.wait.total_ns()) /
           static_cast<double>(std::max<std::int64_t>(1, steps.running_ns()));
  };
  const auto slowest = std::max_element(
      ranks.begin(), ranks.end(), [&](const auto& a, const auto& b) { return share(a.second) < share(b.second); });
  answer.steps = slowest->second;

  std::vector<std::size_t> together;
  for (std::size_t i = 0; i < answer.loaders.size(); ++i) {
    const LoaderAnswer& loader = answer.loaders[i];
    if (loader.pid != slowest->first || loader.evaluation != evaluation) continue;
    together.push_back(i);
    if (!answer.main || loader.steps.wait.total_ns() > answer.loaders[*answer.main].steps.wait.total_ns())
      answer.main = i;
  }
  const LoaderAnswer& main = answer.loaders[*answer.main];
  answer.ranks = ranks.size();
  if (ranks.size() > 1) answer.slowest_rank = main.rank;
  if (together.size() == 1) {
    answer.verdict = main.verdict;
    answer.half_width = main.half_width;
  } else if (answer.steps.steps >= kFewestSteps) {
    answer.verdict = meter::judge(answer.steps.work_ns(), answer.steps.wait.split());
  }
  advise(answer, offer);
  return answer;
}

std::string_view stage_name(meter::Bound bound) noexcept {
  switch (bound) {
    case meter::Bound::fetch:
      return "fetch";
    case meter::Bound::prep:
      return "prep";
    case meter::Bound::handoff:
      return "hand-off";
    case meter::Bound::compute:
      return "compute";
  }
  return "compute";
}

}  // namespace stoker::measure
