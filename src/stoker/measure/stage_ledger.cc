#include "stoker/measure/stage_ledger.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stoker/base/units.h"

namespace stoker::measure {
namespace {

constexpr std::size_t kMostSlots = 600, kMostPoints = 60;
constexpr double kAtWork = 0.7;      // of its threads' time: the stage is the limit
constexpr double kComputes = 0.3;    // of its busy time on a core: it computes, rather than waits
constexpr double kSameItems = 0.05;  // two stages that count the same things
constexpr double kMostThreads = 64;  // more of them are no remedy
constexpr double kShortest_s = 0.05;

std::string share_text(double share) {
  return share > 0 && share < 0.1 ? fmt::format("{:.1f} %", 100 * share) : fmt::format("{:.0f} %", 100 * share);
}

// Stages that the same threads run are one lane: its threads are busy with any of them.
struct Lane {
  std::vector<std::size_t> stages = {};
  double busy_share = 0;
  double capacity_per_s = 0;
};

std::vector<Lane> lanes_of(const std::vector<StageFacts>& stages, const std::vector<const SpanTimes::Stage*>& sums,
                           double seconds) {
  std::vector<Lane> lanes;
  std::vector<bool> taken(stages.size());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (taken[i]) continue;
    Lane lane;
    std::set<std::pair<int, int>> threads = sums[i]->threads;
    for (bool grew = true; grew;) {
      grew = false;
      for (std::size_t j = i; j < stages.size(); ++j) {
        const bool shares = std::any_of(sums[j]->threads.begin(), sums[j]->threads.end(),
                                        [&](const auto& thread) { return threads.contains(thread); });
        if (taken[j] || !shares) continue;
        taken[j] = grew = true;
        lane.stages.push_back(j);
        threads.insert(sums[j]->threads.begin(), sums[j]->threads.end());
      }
    }
    double busy = 0, items = 0;
    for (const std::size_t stage : lane.stages) {
      busy += static_cast<double>(sums[stage]->busy_ns) * 1e-9;
      items = std::max(items, static_cast<double>(sums[stage]->items));
    }
    lane.busy_share = busy / std::max(1e-9, seconds * static_cast<double>(threads.size()));
    lane.capacity_per_s = busy > 0 ? items / busy * static_cast<double>(threads.size()) : 0;
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

// What has left one stage and not entered the next.
std::optional<QueueFacts> queue_between(const SpanTimes& times, const std::string& from, const std::string& to) {
  const SpanTimes::Stage &before = times.stages().at(from), &after = times.stages().at(to);
  const double made = static_cast<double>(before.items), taken = static_cast<double>(after.begun);
  if (made <= 0 ||
      std::abs(made - taken) >
          kSameItems * made + static_cast<double>(before.begun - std::min(before.begun, before.items)) + 1) {
    return std::nullopt;
  }
  QueueFacts queue{.from = from, .to = to};
  const std::int64_t first = times.from_ns() / times.slot_ns(), last = times.to_ns() / times.slot_ns();
  double depth = 0, sum = 0;
  for (std::int64_t slot = first; slot <= last; ++slot) {
    if (const auto found = before.slots.find(slot); found != before.slots.end())
      depth += static_cast<double>(found->second.second);
    if (const auto found = after.slots.find(slot); found != after.slots.end())
      depth -= static_cast<double>(found->second.first);
    const double now = std::max(0.0, depth);
    sum += now;
    queue.most = std::max(queue.most, now);
    queue.over_time.emplace_back(static_cast<double>((slot - first + 1) * times.slot_ns()) * 1e-9, now);
  }
  queue.mean = sum / static_cast<double>(last - first + 1);
  queue.last = std::max(0.0, depth);
  while (queue.over_time.size() > kMostPoints) {  // every other one
    std::vector<std::pair<double, double>> thinned;
    for (std::size_t i = 1; i < queue.over_time.size(); i += 2) thinned.push_back(queue.over_time[i]);
    queue.over_time = std::move(thinned);
  }
  return queue;
}

std::string threads_text(std::uint64_t threads) {
  return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

// How to make the limit wider.
void advise(StageLedger& ledger, const StageFacts& limit, double target_per_s, double cores) {
  const double needed = limit.per_thread_per_s > 0 ? std::ceil(target_per_s / limit.per_thread_per_s - 1e-9) : 0;
  const double now = static_cast<double>(limit.threads);
  const bool computes = limit.cpu_share >= kComputes;
  const std::string rates = fmt::format("one thread of `{}` handles {}/s, and {}/s are wanted", limit.name,
                                        format_rate(limit.per_thread_per_s), format_rate(target_per_s));
  ledger.why.push_back(rates);
  const double most = computes && cores > 0 ? cores : kMostThreads;
  if (needed > now && needed <= most) {
    ledger.widen_to = static_cast<std::uint64_t>(needed);
    ledger.advice.push_back(
        fmt::format("widen `{}`: {} (now {})", limit.name, threads_text(ledger.widen_to), limit.threads));
  } else if (needed > most && computes) {
    if (most > now) {
      ledger.widen_to = static_cast<std::uint64_t>(most);
      ledger.advice.push_back(fmt::format("widen `{}`: {} (now {}), as many as there are cores", limit.name,
                                          threads_text(ledger.widen_to), limit.threads));
    }
    ledger.advice.push_back(
        fmt::format("make `{}` cheaper: {:.0f} cores would be needed for what it computes now", limit.name, needed));
  } else if (needed > most) {
    ledger.widen_to = static_cast<std::uint64_t>(std::min(most, std::max(now * 2, 16.0)));
    ledger.advice.push_back(
        fmt::format("`{}` waits: {:.0f} threads would be needed, more than a machine runs well; read fewer and "
                    "larger files (`stoker pack`), or from memory (`stoker.Loader(..., storage=\"ram\")` or \"mmap\")",
                    limit.name, needed));
    if (ledger.widen_to > limit.threads)
      ledger.advice.push_back(
          fmt::format("until then widen `{}`: {} (now {})", limit.name, threads_text(ledger.widen_to), limit.threads));
  }
  if (computes && limit.threads > 1)
    ledger.notes.push_back(
        "threads of Python share one lock (the GIL): work in Python itself is no faster with more of them; "
        "processes are");
}

}  // namespace

void SpanTimes::add(const SpanWindow& window) {
  if (window.stage.empty() || window.to_ns < window.from_ns || window.busy_ns < 0) return;
  const bool is_first = stages_.empty();
  from_ns_ = is_first ? window.from_ns : std::min(from_ns_, window.from_ns);
  to_ns_ = is_first ? window.to_ns : std::max(to_ns_, window.to_ns);
  auto [found, is_new] = stages_.try_emplace(window.stage);
  Stage& stage = found->second;
  stage.first_ns = is_new ? window.from_ns : std::min(stage.first_ns, window.from_ns);
  stage.calls += window.calls;
  stage.items += window.items;
  stage.begun += window.begun;
  stage.busy_ns += window.busy_ns;
  stage.cpu_ns += window.cpu_ns;
  stage.threads.emplace(window.pid, window.thread);
  auto& [begun, finished] = stage.slots[window.to_ns / slot_ns_];
  begun += window.begun;
  finished += window.items;
  while (static_cast<std::size_t>((to_ns_ - from_ns_) / slot_ns_) > kMostSlots) {
    slot_ns_ *= 2;
    for (auto& [name, one] : stages_) {
      std::map<std::int64_t, std::pair<std::uint64_t, std::uint64_t>> wider;
      for (const auto& [slot, counts] : one.slots) {
        auto& sum = wider[slot / 2];
        sum.first += counts.first;
        sum.second += counts.second;
      }
      one.slots = std::move(wider);
    }
  }
}

StageLedger stage_ledger(const SpanTimes& times, double cores) {
  StageLedger ledger;
  ledger.seconds = static_cast<double>(times.to_ns() - times.from_ns()) * 1e-9;
  if (times.is_empty()) return ledger;
  std::vector<std::pair<std::int64_t, std::string>> order;
  for (const auto& [name, stage] : times.stages()) order.emplace_back(stage.first_ns, name);
  std::sort(order.begin(), order.end());
  std::vector<const SpanTimes::Stage*> sums;
  for (const auto& [first, name] : order) {
    const SpanTimes::Stage& sum = times.stages().at(name);
    const double busy = static_cast<double>(sum.busy_ns) * 1e-9, threads = static_cast<double>(sum.threads.size());
    const double items = static_cast<double>(sum.items);
    sums.push_back(&sum);
    ledger.stages.push_back({.name = name,
                             .threads = sum.threads.size(),
                             .items = sum.items,
                             .busy_share = busy / std::max(1e-9, ledger.seconds * threads),
                             .cpu_share = busy > 0 ? std::min(1.0, static_cast<double>(sum.cpu_ns) * 1e-9 / busy) : 0,
                             .per_s = items / std::max(1e-9, ledger.seconds),
                             .per_thread_per_s = busy > 0 ? items / busy : 0,
                             .capacity_per_s = busy > 0 ? items / busy * threads : 0});
  }
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    if (auto queue = queue_between(times, order[i].second, order[i + 1].second)) {
      ledger.queues.push_back(std::move(*queue));
    } else {
      ledger.notes.push_back(
          fmt::format("`{}` and `{}` count different things, so what lies between them is not known: give "
                      "both the number of items of a pass",
                      order[i].second, order[i + 1].second));
    }
  }
  if (ledger.seconds < kShortest_s) {
    ledger.headline = "no verdict: the stages ran for too short a time";
    return ledger;
  }
  std::vector<Lane> lanes = lanes_of(ledger.stages, sums, ledger.seconds);
  for (const Lane& lane : lanes) {
    for (const std::size_t stage : lane.stages) ledger.stages[stage].shares_threads = lane.stages.size() > 1;
  }
  const auto busiest = std::max_element(lanes.begin(), lanes.end(),
                                        [](const Lane& a, const Lane& b) { return a.busy_share < b.busy_share; });
  const StageFacts& fed = ledger.stages.back();
  if (busiest->busy_share < kAtWork) {
    ledger.bound = "handoff_bound";
    ledger.headline = fmt::format("handoff_bound, most likely: no stage is at work more than {} of the time",
                                  share_text(busiest->busy_share));
    ledger.why.push_back(fmt::format("`{}` is at work {} of the time", fed.name, share_text(fed.busy_share)));
    ledger.advice.push_back(
        "look for what runs outside of the spans: queues that are too short, locks, one thread that hands "
        "everything over; give it a span of its own");
    return ledger;
  }
  std::size_t limit = busiest->stages.front();
  for (const std::size_t stage : busiest->stages) {
    if (sums[stage]->busy_ns > sums[limit]->busy_ns) limit = stage;
  }
  ledger.limit = limit;
  const StageFacts& stage = ledger.stages[limit];
  double next_per_s = 0;  // what the whole would do if the limit were free
  for (const Lane& lane : lanes) {
    if (&lane == &*busiest || lane.capacity_per_s <= 0) continue;
    next_per_s = next_per_s == 0 ? lane.capacity_per_s : std::min(next_per_s, lane.capacity_per_s);
  }
  if (next_per_s > 0 && stage.per_s > 0) ledger.gain = std::max(1.0, next_per_s / stage.per_s);
  // The stage that is fed waits in the same threads: nothing overlaps.
  const bool is_serial = busiest->stages.size() > 1 && busiest->stages.back() + 1 == ledger.stages.size();
  if (is_serial && next_per_s <= 0) {
    std::int64_t all = 0;
    for (const std::size_t one : busiest->stages) all += sums[one]->busy_ns;
    ledger.gain = static_cast<double>(all) / static_cast<double>(std::max<std::int64_t>(1, all - sums[limit]->busy_ns));
  }
  const bool is_fed = limit + 1 == ledger.stages.size() && ledger.stages.size() > 1;
  ledger.bound = is_fed ? "compute_bound" : stage.cpu_share >= kComputes ? "prep_bound" : "fetch_bound";
  const std::string general = is_fed ? "" : " (io_bound)";
  const std::string gain = ledger.gain <= 1    ? ""
                           : ledger.gain >= 20 ? ": more than 20x faster if it were free"
                                               : fmt::format(": {:.2f}x faster if it were free", ledger.gain);
  ledger.headline = is_fed
                        ? fmt::format("compute_bound: `{}` is at work {} of the time, and the stages before it keep up",
                                      stage.name, share_text(busiest->busy_share))
                        : fmt::format("{}{}: `{}` is the limit, at work {} of the time{}", ledger.bound, general,
                                      stage.name, share_text(busiest->busy_share), gain);
  ledger.why.push_back(fmt::format("{}: {} in `{}`, {} of that on a core", threads_text(stage.threads),
                                   share_text(stage.busy_share), stage.name, share_text(stage.cpu_share)));
  if (!is_fed) {
    ledger.why.push_back(
        fmt::format("`{}` is at work {} of the time, and waits for the rest", fed.name, share_text(fed.busy_share)));
    if (is_serial) {
      ledger.advice.push_back(fmt::format(
          "give `{}` threads of its own and a queue: now it and `{}` run one after the other in the same threads",
          stage.name, fed.name));
    }
    if (next_per_s > 0) {
      advise(ledger, stage, next_per_s, cores);
    } else if (is_serial) {
      advise(ledger, stage, fed.capacity_per_s, cores);
    }
  }
  return ledger;
}

Json to_json(const StageLedger& ledger) {
  Json json = {{"seconds", ledger.seconds}, {"bound", ledger.bound.empty() ? Json(nullptr) : Json(ledger.bound)}};
  json["limit"] = ledger.limit ? Json(ledger.stages[*ledger.limit].name) : Json(nullptr);
  json["gain"] = ledger.gain;
  json["widen_to"] = ledger.widen_to > 0 ? Json(ledger.widen_to) : Json(nullptr);
  json["stages"] = Json::array();
  for (const StageFacts& stage : ledger.stages) {
    json["stages"].push_back({{"name", stage.name},
                              {"threads", stage.threads},
                              {"items", stage.items},
                              {"busy_share", stage.busy_share},
                              {"cpu_share", stage.cpu_share},
                              {"items_per_s", stage.per_s},
                              {"items_per_thread_per_s", stage.per_thread_per_s},
                              {"capacity_per_s", stage.capacity_per_s},
                              {"shares_threads", stage.shares_threads}});
  }
  json["queues"] = Json::array();
  for (const QueueFacts& queue : ledger.queues) {
    Json over = Json::array();
    for (const auto& [seconds, items] : queue.over_time) over.push_back(Json::array({seconds, items}));
    json["queues"].push_back({{"from", queue.from},
                              {"to", queue.to},
                              {"mean", queue.mean},
                              {"most", queue.most},
                              {"last", queue.last},
                              {"over_time", over}});
  }
  return json;
}

std::vector<std::vector<std::string>> stage_table(const StageLedger& ledger) {
  std::vector<std::vector<std::string>> rows = {
      {"stage", "threads", "items/s", "at work", "on a core", "could do", "queue behind it"}};
  for (const StageFacts& stage : ledger.stages) {
    std::string depth;
    for (const QueueFacts& queue : ledger.queues) {
      if (queue.from == stage.name) depth = fmt::format("{:.1f} (at most {:.0f})", queue.mean, queue.most);
    }
    rows.push_back({stage.name, std::to_string(stage.threads), format_rate(stage.per_s), share_text(stage.busy_share),
                    share_text(stage.cpu_share), format_rate(stage.capacity_per_s), depth});
  }
  return rows;
}

}  // namespace stoker::measure
