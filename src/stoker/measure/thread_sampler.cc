#include "stoker/measure/thread_sampler.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stoker/base/units.h"
#include "stoker/os/process.h"

namespace stoker::measure {
namespace {

constexpr std::int64_t kEvery_ns = 450'000'000;
constexpr std::size_t kMostThreadsOfOne = 64, kListed = 32;
constexpr double kMostly = 0.5, kCores = 0.8;

struct Together {
  std::size_t threads = 0;
  double seconds = 0, running = 0, ready = 0, blocked = 0, asleep = 0, longest = 0;  // times
  double read = 0;                                                                   // bytes
};

Together together(const std::vector<ThreadFacts>& threads) {
  Together sum;
  for (const ThreadFacts& one : threads) {
    if (!one.is_at_work()) continue;
    ++sum.threads;
    sum.seconds += one.seconds;
    sum.running += one.running * one.seconds;
    sum.ready += one.ready * one.seconds;
    sum.blocked += one.blocked * one.seconds;
    sum.asleep += one.asleep * one.seconds;
    sum.longest = std::max(sum.longest, one.seconds);
    sum.read += static_cast<double>(one.read_bytes.value_or(0));
  }
  return sum;
}

}  // namespace

void ThreadSampler::sample(int pid, std::int64_t now_ns) {
  if (sampled_ns_ != 0 && now_ns - sampled_ns_ < kEvery_ns) return;
  sampled_ns_ = now_ns;
  for (const int process : os::process_tree(pid, root_)) {
    for (const os::ThreadCounters& thread : os::thread_counters(process, kMostThreadsOfOne, root_)) {
      auto [found, is_new] = seen_.try_emplace({process, thread.thread});
      Seen& seen = found->second;
      if (is_new) {
        seen.name = thread.name;
        seen.first_ns = now_ns;
        seen.cpu_first = thread.cpu;
        seen.delay_first = thread.delay;
        seen.read_first = thread.read_bytes.value_or(0);
      } else {
        ++seen.readings;
        if (thread.state == 'D') ++seen.blocked;
      }
      seen.last_ns = now_ns;
      seen.cpu = std::max(seen.cpu, thread.cpu);
      seen.delay = std::max(seen.delay, thread.delay);
      seen.has_read = thread.read_bytes.has_value();
      seen.read = std::max(seen.read, thread.read_bytes.value_or(0));
    }
  }
}

std::vector<ThreadFacts> ThreadSampler::facts() const {
  std::vector<ThreadFacts> all;
  for (const auto& [key, seen] : seen_) {
    const double seconds = static_cast<double>(seen.last_ns - seen.first_ns) * 1e-9;
    if (seconds <= 0 || seen.readings == 0) continue;
    ThreadFacts facts{.pid = key.first, .thread = key.second, .name = seen.name, .seconds = seconds};
    facts.running = std::min(1.0, std::chrono::duration<double>(seen.cpu - seen.cpu_first).count() / seconds);
    facts.ready =
        std::min(1 - facts.running, std::chrono::duration<double>(seen.delay - seen.delay_first).count() / seconds);
    // Seen in some of the readings only, so it gets no more than the others leave.
    const double blocked = static_cast<double>(seen.blocked) / static_cast<double>(seen.readings);
    facts.blocked = std::min(blocked, 1 - facts.running - facts.ready);
    facts.asleep = std::max(0.0, 1 - facts.running - facts.ready - facts.blocked);
    if (seen.has_read) facts.read_bytes = seen.read - seen.read_first;
    all.push_back(std::move(facts));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const ThreadFacts& a, const ThreadFacts& b) { return a.asleep < b.asleep; });
  return all;
}

std::string threads_line(const std::vector<ThreadFacts>& threads) {
  const Together sum = together(threads);
  if (sum.threads == 0 || sum.seconds <= 0) return "";
  const auto part = [&](double seconds) { return fmt::format("{:.0f} %", 100 * seconds / sum.seconds); };
  std::string text = fmt::format(
      "{} thread{} at work: {} of their time running, {} ready without a core, {} blocked in reads from a disk, {} "
      "asleep",
      sum.threads, sum.threads == 1 ? "" : "s", part(sum.running), part(sum.ready), part(sum.blocked),
      part(sum.asleep));
  if (sum.read > 0 && sum.longest > 0) text += fmt::format("; {:.1f} MB/s from the disk", sum.read / sum.longest / 1e6);
  return text;
}

std::string threads_verdict(const std::vector<ThreadFacts>& threads, double cores, bool has_model) {
  const Together sum = together(threads);
  if (sum.threads == 0 || sum.seconds <= 0) return "";
  if (sum.blocked / sum.seconds >= kMostly) return "fetch_bound (io_bound), most likely: its threads wait for the disk";
  std::string busy;
  if (cores > 0 && sum.longest > 0 && (sum.running + sum.ready) / sum.longest >= kCores * cores)
    busy = "its threads keep the cores busy";
  else if (std::any_of(threads.begin(), threads.end(), [](const ThreadFacts& one) { return one.running >= kCores; }))
    busy = "one thread computes all the time";
  if (busy.empty()) return "";
  if (has_model) return busy + ", with the model's steps or with its input: threads do not show which";
  return "prep_bound (io_bound), most likely: " + busy;
}

Json to_json(const std::vector<ThreadFacts>& threads) {
  Json json = Json::array();
  for (const ThreadFacts& one : threads) {
    if (json.size() == kListed) break;
    json.push_back({{"pid", one.pid},
                    {"thread", one.thread},
                    {"name", one.name},
                    {"seconds", one.seconds},
                    {"running_share", one.running},
                    {"ready_share", one.ready},
                    {"blocked_share", one.blocked},
                    {"asleep_share", one.asleep},
                    {"read_bytes", one.read_bytes ? Json(*one.read_bytes) : Json("unknown")}});
  }
  return json;
}

}  // namespace stoker::measure
