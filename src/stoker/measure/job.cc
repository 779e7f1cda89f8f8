#include "stoker/measure/job.h"

#include <algorithm>
#include <utility>

#include "stoker/base/ascii.h"
#include "stoker/base/json.h"

namespace stoker::measure {
namespace {

constexpr std::size_t kListedSteps = 200'000, kHomeless = 100'000, kSlowSamples = 200;

// Threads that torch itself runs in a worker (it serves descriptors of shared memory) are no helpers of the data set.
constexpr double kHelperShare = 0.2;

std::int64_t whole(const Json& line, const char* key, std::int64_t fallback = 0) {
  return line[key].as<std::int64_t>().value_or(fallback);
}
std::string text(const Json& line, const char* key) {
  return line[key].is_string() ? line[key].text() : std::string();
}
bool truth(const Json& line, const char* key, bool fallback = false) {
  return line[key].as<bool>().value_or(fallback);
}

LoaderFacts loader_facts(const Json& line) {
  LoaderFacts facts;
  if (const auto place = line.find("place"); place != line.end() && place->is_object()) {
    facts.file = text(*place, "file");
    facts.name = text(*place, "name");
    facts.line = static_cast<int>(whole(*place, "line"));
  }
  facts.type = text(line, "type");
  const std::string kind = text(line, "kind");
  facts.kind = kind == "stoker" ? LoaderKind::stoker : kind == "other" ? LoaderKind::other : LoaderKind::torch;
  facts.dataset = text(line, "dataset");
  facts.start_method = text(line, "start_method");
  facts.collate = text(line, "collate");
  facts.batch_size = whole(line, "batch_size", -1);
  facts.num_workers = whole(line, "num_workers");
  facts.prefetch_factor = whole(line, "prefetch_factor");
  facts.samples = whole(line, "samples", -1);
  facts.persistent_workers = truth(line, "persistent_workers");
  facts.pin_memory = truth(line, "pin_memory");
  facts.in_order = truth(line, "in_order", true);
  facts.iterable = truth(line, "iterable");
  facts.workers_are_auto = truth(line, "workers_are_auto");
  facts.replaceable = truth(line, "replaceable");
  for (const auto& [name, at] : line["literals"].items()) {
    if (at.is_array() && at.size() == 3)
      facts.literals[name] = {at[0].as<int>().value_or(0), at[1].as<int>().value_or(-1), at[2].as<int>().value_or(-1)};
  }
  return facts;
}

StoreUse store_use(const Json& line) {
  const auto count = [&](const char* key) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, whole(line, key)));
  };
  if (!line.is_object()) return {};
  return {count("requests"),    count("retries"),    count("doubled"),
          count("store_bytes"), count("cache_hits"), count("cache_misses")};
}

BatchTimes batch_times(const Json& line) {
  BatchTimes times;
  times.started_ns = whole(line, "s");
  times.received_ns = whole(line, "r", times.started_ns);
  times.collating_ns = whole(line, "c");
  times.ended_ns = whole(line, "e");
  times.put_ns = whole(line, "d", times.ended_ns);
  // The hook reads its clocks one after another: CPU time and delay may be of a slightly longer time than the samples.
  const std::int64_t took = std::max<std::int64_t>(0, times.collating_ns - times.started_ns);
  times.cpu_ns = std::clamp<std::int64_t>(whole(line, "cpu"), 0, took);
  times.delay_ns = std::clamp<std::int64_t>(whole(line, "delay"), 0, took - times.cpu_ns);
  times.collate_delay_ns = std::clamp<std::int64_t>(whole(line, "collate_delay"), 0,
                                                    std::max<std::int64_t>(0, times.ended_ns - times.collating_ns));
  times.helpers_ns = whole(line, "helpers");
  times.spinners_ns = whole(line, "spinners");
  times.samples = static_cast<std::uint64_t>(std::max<std::int64_t>(0, whole(line, "samples")));
  return times;
}

BatchFacts batch_facts(const Json& line) {
  BatchFacts facts;
  facts.bytes = static_cast<std::uint64_t>(whole(line, "bytes"));
  facts.tensors = static_cast<std::uint64_t>(whole(line, "tensors"));
  facts.objects = static_cast<std::uint64_t>(whole(line, "objects"));
  facts.channels_last = truth(line, "channels_last");
  facts.threads = whole(line, "threads");
  facts.torch = text(line, "torch");
  facts.precision = text(line, "float32_matmul_precision");
  if (const auto cuda = line.find("cuda"); cuda != line.end() && cuda->is_object()) {
    facts.device = text(*cuda, "name");
    if (const auto tf32 = cuda->find("tf32_matmul"); tf32 != cuda->end() && tf32->is_boolean())
      facts.tf32 = tf32->get<bool>();
  }
  return facts;
}

}  // namespace

std::int64_t LoaderFacts::queued() const noexcept {
  if (kind == LoaderKind::stoker) return std::max<std::int64_t>(0, prefetch_factor);
  return std::max<std::int64_t>(0, num_workers) * std::max<std::int64_t>(1, prefetch_factor);
}

std::int64_t Waited::total_ns() const noexcept {
  return start_ns + task_ns + fetch_ns + prep_ns + collate_ns + deliver_ns + unknown_ns;
}

meter::WaitSplit Waited::split() const noexcept {
  return {.fetch_ns = fetch_ns, .prep_ns = prep_ns, .handoff_ns = total_ns() - fetch_ns - prep_ns};
}

Waited& Waited::operator+=(const Waited& other) noexcept {
  start_ns += other.start_ns;
  task_ns += other.task_ns;
  fetch_ns += other.fetch_ns;
  prep_ns += other.prep_ns;
  collate_ns += other.collate_ns;
  deliver_ns += other.deliver_ns;
  unknown_ns += other.unknown_ns;
  return *this;
}

StoreUse& StoreUse::operator+=(const StoreUse& other) noexcept {
  requests += other.requests;
  retries += other.retries;
  doubled += other.doubled;
  bytes += other.bytes;
  cache_hits += other.cache_hits;
  cache_misses += other.cache_misses;
  return *this;
}

std::int64_t BatchTimes::prep_ns() const noexcept {
  const std::int64_t took = std::max<std::int64_t>(0, collating_ns - started_ns);
  const bool helped = static_cast<double>(helpers_ns) >= kHelperShare * static_cast<double>(took);
  return std::clamp<std::int64_t>(cpu_ns + delay_ns + (helped ? helpers_ns : 0), 0, took);
}

Waited split_wait(std::int64_t from_ns, std::int64_t to_ns, const BatchTimes& batch) noexcept {
  Waited wait;
  std::int64_t at = from_ns;
  const auto until = [&](std::int64_t end) {
    const std::int64_t next = std::clamp(end, at, std::max(at, to_ns)), passed = next - at;
    at = next;
    return passed;
  };
  wait.start_ns = until(batch.born_ns);
  wait.task_ns = until(batch.started_ns);
  const std::int64_t samples = until(batch.collating_ns);
  const std::int64_t took = std::max<std::int64_t>(1, batch.collating_ns - batch.started_ns);
  wait.prep_ns = static_cast<std::int64_t>(static_cast<double>(samples) * static_cast<double>(batch.prep_ns()) /
                                           static_cast<double>(took));
  wait.fetch_ns = samples - wait.prep_ns;
  wait.collate_ns = until(batch.ended_ns);
  wait.deliver_ns = until(to_ns);
  return wait;
}

void Steps::add(const Step& step) noexcept {
  ++steps;
  samples += step.samples;
  compute_ns += step.compute_ns;
  if (step.h2d_ns) h2d_ns += *step.h2d_ns, ++h2d_steps;
  if (step.compute_cpu_ns) compute_cpu_ns += *step.compute_cpu_ns, ++compute_cpu_steps;
  wait += step.wait;
  store += step.store;
}

void Steps::add(const Steps& other) noexcept {
  steps += other.steps;
  samples += other.samples;
  compute_ns += other.compute_ns;
  h2d_ns += other.h2d_ns;
  h2d_steps += other.h2d_steps;
  compute_cpu_ns += other.compute_cpu_ns;
  compute_cpu_steps += other.compute_cpu_steps;
  wait += other.wait;
  store += other.store;
}

bool LoaderRun::is_evaluation() const noexcept {
  const std::uint64_t all = folded_steps + steps.size();
  if (all > 0 && 2 * without_grad > all) return true;
  const std::string name = to_lower(facts.name);
  if (name.find("train") != std::string::npos) return false;
  for (const char* word : {"val", "test", "eval"}) {
    if (name.find(word) != std::string::npos) return true;
  }
  return false;
}

Job::Iteration* Job::find_iteration(int pid, int number) {
  const auto it = iterations_.find({pid, number});
  return it == iterations_.end() ? nullptr : &it->second;
}

Step* Job::find_step(int pid, int loader, std::size_t place) {
  const auto run = loaders_.find({pid, loader});
  if (run == loaders_.end() || place < run->second.folded_steps) return nullptr;
  place -= run->second.folded_steps;
  return place < run->second.steps.size() ? &run->second.steps[place] : nullptr;
}

std::optional<std::pair<int, int>> Job::iteration_of_worker(int pid, int thread, std::int64_t at_ns) const {
  const std::vector<std::pair<int, int>>* candidates = nullptr;
  if (const auto it = of_worker_.find(pid); it != of_worker_.end()) candidates = &it->second;
  if (candidates == nullptr) {  // a thread of the training process: known by the seed it was given
    const auto worker = workers_.find({pid, thread});
    if (worker == workers_.end()) return std::nullopt;
    const auto it = of_seed_.find(worker->second.seed);
    if (it == of_seed_.end()) return std::nullopt;
    candidates = &it->second;
  }
  for (auto key = candidates->rbegin(); key != candidates->rend(); ++key) {
    if (iterations_.at(*key).begun_ns <= at_ns) return *key;
  }
  return std::nullopt;
}

// What the training thread did since its last batch was computing on it.
void Job::close_gap(int pid, std::int64_t at_ns, std::optional<std::int64_t> cpu_ns) {
  Consumer& consumer = consumers_[pid];
  const std::int64_t gap = std::max<std::int64_t>(0, at_ns - consumer.since_ns);
  if (consumer.last) {
    if (Step* step = find_step(pid, consumer.last->first, consumer.last->second)) {
      step->compute_ns = gap;
      if (cpu_ns && consumer.cpu_ns) step->compute_cpu_ns = std::max<std::int64_t>(0, *cpu_ns - *consumer.cpu_ns);
    }
  } else if (consumer.ended) {
    loaders_[{pid, *consumer.ended}].between_ns += gap;
  }
  consumer.last.reset();
  consumer.ended.reset();
}

bool Job::place_batch(int pid, int thread, std::int64_t batch, const BatchTimes& times) {
  const auto key = iteration_of_worker(pid, thread, times.received_ns);
  if (key) keep_batch(*key, batch, times);
  return key.has_value();
}

void Job::keep_batch(std::pair<int, int> key, std::int64_t batch, const BatchTimes& times) {
  Iteration& iteration = iterations_.at(key);
  iteration.batches[batch] = times;
  LoaderRun& run = loaders_[{key.first, iteration.loader}];
  for (Made* made : {&run.made, &run.made_by_epoch[iteration.epoch]}) {
    ++made->batches;
    made->samples += times.samples;
    made->prep_ns += times.prep_ns();
    made->delay_ns += times.delay_ns;
    made->fetch_ns += std::max<std::int64_t>(0, times.collating_ns - times.started_ns - times.prep_ns());
    made->spinners_ns += times.spinners_ns;
    made->collate_ns += std::max<std::int64_t>(0, times.ended_ns - times.collating_ns);
    made->collate_delay_ns += times.collate_delay_ns;
  }
}

void Job::add(int pid, std::string_view line_text) {
  const Json line = Json::parse_or_null(line_text);
  if (!line.is_object()) {
    ++bad_lines_;
    return;
  }
  const std::string kind = text(line, "k");
  if (kind == "span") {
    const auto count = [&](const char* key) {
      return static_cast<std::uint64_t>(std::max<std::int64_t>(0, whole(line, key)));
    };
    spans_.add({.stage = text(line, "n"),
                .pid = pid,
                .thread = static_cast<int>(whole(line, "th")),
                .from_ns = whole(line, "t0"),
                .to_ns = whole(line, "t1"),
                .calls = count("c"),
                .items = count("i"),
                .begun = count("s"),
                .busy_ns = whole(line, "b"),
                .cpu_ns = whole(line, "u")});
    return;
  }
  saw_torch_ = true;
  if (kind == "batch") {
    BatchTimes times = batch_times(line);
    const std::int64_t batch = whole(line, "b");
    const int thread = static_cast<int>(whole(line, "w"));
    if (const auto worker = workers_.find({pid, thread}); worker != workers_.end())
      times.born_ns = worker->second.born_ns;
    times.worker = thread;
    if (!place_batch(pid, thread, batch, times) && homeless_.size() < kHomeless)
      homeless_.push_back({pid, thread, batch, times});
  } else if (kind == "next") {
    const int number = static_cast<int>(whole(line, "n"));
    const Iteration* iteration = find_iteration(pid, number);
    if (iteration == nullptr) return;
    LoaderRun& run = loaders_[{pid, iteration->loader}];
    Step step;
    step.epoch = iteration->epoch;
    step.batch = static_cast<std::uint64_t>(whole(line, "b"));
    step.asked_ns = whole(line, "t0");
    step.got_ns = whole(line, "t1");
    step.first = run.steps.empty() || run.steps.back().epoch != step.epoch;
    const auto cpu_at = [&](const char* key) {
      return line.contains(key) ? std::optional(whole(line, key)) : std::nullopt;
    };
    close_gap(pid, step.asked_ns, cpu_at("p0"));
    if (whole(line, "g", 1) == 0) ++run.without_grad;
    const std::size_t place = run.folded_steps + run.steps.size();
    const bool is_split = line.contains("fetch");  // by a loader that knows its own stages
    if (is_split) {
      const std::int64_t wait = step.got_ns - step.asked_ns;
      step.wait.fetch_ns = std::clamp<std::int64_t>(whole(line, "fetch"), 0, wait);
      step.wait.prep_ns = std::clamp<std::int64_t>(whole(line, "prep"), 0, wait - step.wait.fetch_ns);
      step.wait.deliver_ns = wait - step.wait.fetch_ns - step.wait.prep_ns;
      step.samples = static_cast<std::uint64_t>(std::max<std::int64_t>(0, whole(line, "samples")));
      if (line.contains("store")) step.store = store_use(line["store"]);
      if (step.first) step.wait.start_ns += iteration->made_ns - iteration->begun_ns;
      step.settled = true;
    }
    run.steps.push_back(step);
    steps_ = std::max<std::uint64_t>(steps_, place + 1);
    if (line.contains("s"))
      keep_batch({pid, number}, whole(line, "b"), batch_times(line));  // made by the asking thread
    if (!is_split) waiting_.push_back({pid, number, whole(line, "b"), age_, place});
    consumers_[pid] = {
        .last = std::pair(iteration->loader, place), .ended = {}, .since_ns = step.got_ns, .cpu_ns = cpu_at("p1")};
  } else if (kind == "iter") {
    const int loader = static_cast<int>(whole(line, "i")), number = static_cast<int>(whole(line, "n"));
    LoaderRun& run = loaders_[{pid, loader}];
    Iteration iteration;
    iteration.loader = loader;
    iteration.epoch = run.epochs++;
    iteration.begun_ns = whole(line, "t0");
    iteration.made_ns = whole(line, "t1");
    iteration.seed = static_cast<std::uint64_t>(whole(line, "seed"));
    run.pid = pid;
    run.number = loader;
    run.rank = static_cast<int>(whole(line, "rank"));
    run.world_size = static_cast<int>(whole(line, "world", 1));
    if (run.world_size <= 1 && ranks_.contains(pid) && ranks_[pid] >= 0) run.rank = ranks_[pid];
    if (!run.steps.empty()) run.steps.back().wait.start_ns += std::exchange(run.stopping_ns, 0);
    const auto workers = line.find("workers");
    if (workers != line.end() && workers->is_array()) {
      for (const Json& worker : *workers) {
        if (!worker.is_number() || worker.get<int>() == 0) continue;
        iteration.workers.push_back(worker.get<int>());
        of_worker_[worker.get<int>()].push_back({pid, number});
      }
    }
    of_seed_[iteration.seed].push_back({pid, number});
    close_gap(pid, iteration.begun_ns);
    consumers_[pid].since_ns = iteration.made_ns;
    iterations_[{pid, number}] = std::move(iteration);
    std::vector<Homeless> homeless;
    std::swap(homeless, homeless_);
    for (Homeless& batch : homeless) {
      if (!place_batch(batch.pid, batch.thread, batch.batch, batch.times)) homeless_.push_back(batch);
    }
  } else if (kind == "end") {
    const Iteration* iteration = find_iteration(pid, static_cast<int>(whole(line, "n")));
    if (iteration == nullptr) return;
    close_gap(pid, whole(line, "t0"));
    loaders_[{pid, iteration->loader}].stopping_ns = std::max<std::int64_t>(0, whole(line, "t1") - whole(line, "t0"));
    consumers_[pid] = {.last = {}, .ended = iteration->loader, .since_ns = whole(line, "t1")};
  } else if (kind == "worker") {
    workers_[{pid, static_cast<int>(whole(line, "thread"))}] = {
        static_cast<int>(whole(line, "id")), static_cast<std::uint64_t>(whole(line, "seed")), whole(line, "t")};
  } else if (kind == "sent") {
    const auto key = iteration_of_worker(pid, static_cast<int>(whole(line, "thread")), whole(line, "d"));
    if (!key) return;
    LoaderRun& run = loaders_[{key->first, iterations_.at(*key).loader}];
    ++run.sent;
    run.sent_bytes += static_cast<std::uint64_t>(whole(line, "bytes"));
    run.pickle_ns += whole(line, "p") - whole(line, "d");
    run.send_ns += whole(line, "t") - whole(line, "p");
  } else if (kind == "pin") {
    const Consumer& consumer = consumers_[pid];
    const std::optional<int> loader = consumer.last ? std::optional<int>(consumer.last->first) : consumer.ended;
    if (!loader) return;
    LoaderRun& run = loaders_[{pid, *loader}];
    ++run.pinned;
    run.pin_ns += whole(line, "t1") - whole(line, "t0");
  } else if (kind == "device") {
    const Iteration* iteration = find_iteration(pid, static_cast<int>(whole(line, "n")));
    if (iteration == nullptr) return;
    std::vector<Step>& steps = loaders_[{pid, iteration->loader}].steps;
    for (std::size_t i = steps.size(); i-- > 0 && steps.size() - i < 4096;) {
      if (steps[i].epoch != iteration->epoch || steps[i].batch != static_cast<std::uint64_t>(whole(line, "b")))
        continue;
      steps[i].device_wait_ns = whole(line, "wait");
      if (i == 0) break;
      steps[i - 1].device_work_ns = whole(line, "work");
      if (line.contains("h2d")) steps[i - 1].device_h2d_ns = whole(line, "h2d");
      break;
    }
  } else if (kind == "slow") {
    const auto key = iteration_of_worker(pid, pid, INT64_MAX);
    if (!key) return;
    std::vector<SlowSample>& slow = loaders_[{key->first, iterations_.at(*key).loader}].slow;
    if (slow.size() < kSlowSamples)
      slow.push_back({text(line, "sample"), whole(line, "ns"), whole(line, "cpu"), whole(line, "mean")});
  } else if (kind == "loader") {
    LoaderRun& run = loaders_[{pid, static_cast<int>(whole(line, "i"))}];
    run.pid = pid;
    run.number = static_cast<int>(whole(line, "i"));
    run.facts = loader_facts(line);
  } else if (kind == "described") {
    if (const Iteration* iteration = find_iteration(pid, static_cast<int>(whole(line, "n")))) {
      std::optional<BatchFacts>& facts = loaders_[{pid, iteration->loader}].batch;
      if (!facts) facts = batch_facts(line);
    }
  } else if (kind == "process") {
    ranks_[pid] = static_cast<int>(whole(line, "rank", -1));
  } else if (kind == "installed") {
    arithmetic_[pid].watched = whole(line, "early") != 0;
  } else if (kind == "autocast") {
    arithmetic_[pid].autocast_device = text(line, "device");
    arithmetic_[pid].autocast_dtype = text(line, "dtype");
  } else if (kind == "channels_last") {
    arithmetic_[pid].channels_last = true;
  }
}

bool Job::settle_one(const Waiting& waiting, bool all) {
  Iteration* iteration = find_iteration(waiting.pid, waiting.iteration);
  Step* step = find_step(waiting.pid, iteration->loader, waiting.step);
  if (step == nullptr) return true;
  const auto batch = iteration->batches.find(waiting.batch);
  if (batch == iteration->batches.end() && !all) return false;
  Waited wait = {.unknown_ns = step->got_ns - step->asked_ns};
  if (batch != iteration->batches.end()) {
    wait = split_wait(step->asked_ns, step->got_ns, batch->second);
    step->samples = batch->second.samples;
    step->made = batch->second;
    iteration->batches.erase(batch);
  }
  if (step->first) wait.start_ns += iteration->made_ns - iteration->begun_ns;
  step->wait += wait;  // the end of the epoch may have been added already
  step->settled = true;
  for (const auto& [number, times] : iteration->batches) {
    if (number > waiting.batch && times.put_ns <= step->asked_ns) ++step->ready;
  }
  return true;
}

void Job::settle(bool all) {
  std::vector<Waiting> later;
  for (const Waiting& waiting : waiting_) {
    if ((waiting.age < age_ || all) && settle_one(waiting, all)) continue;
    later.push_back(waiting);
  }
  waiting_ = std::move(later);
  ++age_;
  for (auto& [key, run] : loaders_) {
    if (run.steps.size() < 2 * kListedSteps) continue;
    for (std::size_t i = 0; i < kListedSteps; ++i) run.folded[run.steps[i].epoch].add(run.steps[i]);
    run.steps.erase(run.steps.begin(), run.steps.begin() + static_cast<std::ptrdiff_t>(kListedSteps));
    run.folded_steps += kListedSteps;
  }
}

Arithmetic Job::arithmetic(int pid) const {
  const auto found = arithmetic_.find(pid);
  return found == arithmetic_.end() ? Arithmetic{} : found->second;
}

std::vector<int> Job::workers() const {
  std::vector<int> pids;
  for (const auto& [key, worker] : workers_) {
    if (pids.empty() || pids.back() != key.first) pids.push_back(key.first);
  }
  return pids;
}

}  // namespace stoker::measure
