#include "machine.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

namespace tune_sim {
namespace {

double uniform(Generator& generator, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(generator);
}

double log_uniform(Generator& generator, double low, double high) {
  return std::exp(uniform(generator, std::log(low), std::log(high)));
}

// Around 1, with this coefficient of variation.
double jitter(Generator& generator, double cv) {
  const double sigma = std::sqrt(std::log(1 + cv * cv));
  return std::lognormal_distribution<double>(-sigma * sigma / 2, sigma)(generator);
}

double jitter(Draws& draws, double cv) {
  const double sigma = std::sqrt(std::log(1 + cv * cv));
  return std::exp(sigma * draws.normal() - sigma * sigma / 2);
}

template <typename T>
T one_of(Generator& generator, std::initializer_list<T> values) {
  return values.begin()[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(generator)];
}

constexpr int kBatches[] = {32, 64, 128, 192, 256, 512};

}  // namespace

namespace {

std::vector<double> even_deck() {
  constexpr int kCards = 256;
  std::vector<double> deck;
  double squares = 0;
  for (int i = 0; i < kCards; ++i) {
    double low = -6, high = 6;  // the quantile by bisection
    for (int step = 0; step < 40; ++step) {
      const double middle = (low + high) / 2;
      (std::erfc(-middle / std::sqrt(2.0)) / 2 < (i + 0.5) / kCards ? low : high) = middle;
    }
    deck.push_back(low);
    squares += low * low;
  }
  for (double& card : deck) card /= std::sqrt(squares / kCards);
  return deck;
}

}  // namespace

double Draws::normal() {
  if (!are_even_) return std::normal_distribution<double>()(generator_);
  if (deck_.empty()) {
    static const std::vector<double> kDeck = even_deck();
    deck_ = kDeck;
    at_ = deck_.size();
  }
  if (at_ == deck_.size()) {
    std::shuffle(deck_.begin(), deck_.end(), generator_);
    at_ = 0;
  }
  return deck_[at_++];
}

Machine::Machine(std::uint64_t seed) {
  Generator generator(seed);
  peak_ = log_uniform(generator, 100, 5000);
  half_batch_ = log_uniform(generator, 1, 60);
  worker_rate_ = peak_ / log_uniform(generator, 1.5, 40);  // this number of workers feeds it
  contention_ = log_uniform(generator, 0.0005, 0.01);
  if (uniform(generator, 0, 1) < 0.3) disk_rate_ = peak_ * uniform(generator, 0.3, 1.2);
  cores_ = one_of(generator, {4, 8, 12, 16, 24, 32, 64});
  copy_pinned_ = uniform(generator, 0.01, 0.06) / peak_;
  copy_unpinned_ = copy_pinned_ * uniform(generator, 1.2, 3);
  if (uniform(generator, 0, 1) < 0.15) std::swap(copy_pinned_, copy_unpinned_);  // unified memory
  build_jitter_ = uniform(generator, 0.05, 0.15);
  step_jitter_ = uniform(generator, 0.005, 0.04);
  noise_ = uniform(generator, 0.01, 0.03);
  startup_ = uniform(generator, 2, 8);
  for (const int batch : kBatches) kernels_.emplace_back(batch, jitter(generator, 0.01));
  if (uniform(generator, 0, 1) < 0.5) fault_batch_ = one_of(generator, {256, 512});
  if (uniform(generator, 0, 1) < 0.2) memory_batch_ = one_of(generator, {192, 256, 512});
  if (uniform(generator, 0, 1) < 0.25) faulty_batches_.push_back(one_of(generator, {64, 128, 192, 256}));
  if (uniform(generator, 0, 1) < 0.25) {
    for (int i = 0; i < 3; ++i) {
      faulty_.push_back({one_of(generator, {32, 64, 128, 192, 256}), one_of(generator, {4, 8, 16, 24, 32}), false});
    }
  }
  if (uniform(generator, 0, 1) < 0.1) flaky_ = 0.5;
}

double Machine::failure_chance(const Setting& setting, End& end) const {
  end = End::out_of_memory;
  if (memory_batch_ > 0 && setting.batch >= memory_batch_) return 1;
  end = End::fault;
  if (fault_batch_ > 0 && setting.batch >= fault_batch_ && setting.workers > 0) return 1;
  for (const int batch : faulty_batches_) {
    if (setting.batch == batch) return flaky_;
  }
  for (const Setting& one : faulty_) {
    if (one.batch == setting.batch && one.workers == setting.workers) return flaky_;
  }
  return 0;
}

double Machine::compute_seconds(const Setting& setting) const {
  double fit = 1;
  for (const auto& [batch, of_batch] : kernels_) {
    if (batch == setting.batch) fit = of_batch;
  }
  const double batch = setting.batch;
  return fit * (batch + half_batch_) / peak_ + batch * (setting.pinned ? copy_pinned_ : copy_unpinned_);
}

// Images per second of each worker while `active` of `workers` build: its share of the cores, of caches and memory, of
// the storage.
double Machine::speed(int active, int workers) const {
  double rate = worker_rate_ / (1 + contention_ * active);
  if (active > cores_) rate *= static_cast<double>(cores_) / active * (1 - 0.003 * std::min(workers - cores_, 40));
  if (disk_rate_ > 0) rate = std::min(rate, disk_rate_ / active);
  return rate;
}

Machine::Trace Machine::simulate(const Setting& setting, int warmup_steps, int steps, Draws builds,
                                 Draws computes) const {
  Trace trace;
  const int total = warmup_steps + steps;
  double now = 0;
  if (setting.workers == 0) {
    for (int i = 0; i < total; ++i) {
      if (i == warmup_steps) trace.begin = now;
      const double compute = compute_seconds(setting) * jitter(computes, step_jitter_);
      now += setting.batch / speed(1, 1) * jitter(builds, build_jitter_) + compute;
      if (i >= warmup_steps) trace.compute += compute;
    }
    trace.end = now;
    return trace;
  }
  // Batch i is built by worker i mod w; a worker may begin it once batch i - prefetch * w was taken. All that build
  // have the same speed at any time, so one clock of images built by each, `done`, serves them all.
  const int workers = setting.workers, ahead = prefetch_ * workers;
  std::vector<char> is_ready(static_cast<std::size_t>(total + ahead + workers), 0);
  std::vector<int> next(static_cast<std::size_t>(workers));
  std::vector<double> begun(static_cast<std::size_t>(workers), -1);  // when; -1: idle
  using Event = std::pair<double, int>;                              // `done` at its end; which worker
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  int taken = 0;
  double done = 0, consumer_free = 0;
  const auto begin_work = [&](int worker) {
    const auto w = static_cast<std::size_t>(worker);
    if (begun[w] >= 0 || next[w] >= taken + ahead) return;
    begun[w] = now;
    events.emplace(done + setting.batch * jitter(builds, build_jitter_), worker);
  };
  for (int worker = 0; worker < workers; ++worker) {
    next[static_cast<std::size_t>(worker)] = worker;
    begin_work(worker);
  }
  while (taken < total) {
    const int active = static_cast<int>(events.size());
    const double rate = active > 0 ? speed(active, workers) : 1;
    const double finish = active > 0 ? now + (events.top().first - done) / rate : HUGE_VAL;
    const double take = is_ready[static_cast<std::size_t>(taken)] ? std::max(consumer_free, now) : HUGE_VAL;
    const double then = std::min(finish, take);
    done += (then - now) * rate;
    now = then;
    if (take <= finish) {
      if (taken == warmup_steps) trace.begin = now;
      const double compute = compute_seconds(setting) * jitter(computes, step_jitter_);
      if (taken >= warmup_steps) trace.compute += compute;
      consumer_free = now + compute;
      const int worker = taken % workers;
      ++taken;
      begin_work(worker);
      continue;
    }
    const int worker = events.top().second;
    const auto w = static_cast<std::size_t>(worker);
    done = events.top().first;
    events.pop();
    trace.busy += now - begun[w];
    ++trace.built;
    begun[w] = -1;
    is_ready[static_cast<std::size_t>(next[w])] = 1;
    next[w] += workers;
    begin_work(worker);
  }
  trace.end = consumer_free;
  return trace;
}

double Machine::true_rate(const Setting& setting) const {
  End end;
  if (failure_chance(setting, end) > 0) return 0;
  Generator generator(12345);
  const int rounds = std::max(setting.workers, 1);
  const Trace trace = simulate(setting, 6 * rounds, 20 * rounds + 300, Draws(generator, true), Draws(generator, true));
  return setting.batch * (20.0 * rounds + 300) / (trace.end - trace.begin);
}

Run Machine::run(const Setting& setting, int warmup_steps, int steps, Generator& generator) const {
  Run run;
  run.seconds = startup_ * uniform(generator, 0.9, 1.1) + 0.03 * setting.workers;
  if (uniform(generator, 0, 1) < failure_chance(setting, run.end)) {
    run.seconds += 3 * compute_seconds(setting);
    return run;
  }
  run.end = End::ran;
  const Trace trace = simulate(setting, warmup_steps, steps, Draws(generator, false), Draws(generator, false));
  const double slow = jitter(generator, noise_);  // the machine is not the same in each run
  run.seconds += trace.end * slow;
  run.consumer_rate = setting.batch * steps / ((trace.end - trace.begin) * slow);
  if (trace.built > 0)
    run.worker_rate = setting.workers * setting.batch * static_cast<double>(trace.built) / (trace.busy * slow);
  run.compute_seconds = trace.compute / steps * slow;
  return run;
}

}  // namespace tune_sim
