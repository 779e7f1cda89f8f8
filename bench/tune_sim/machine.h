// A training job as a queue: workers that build batches, a consumer that takes them in order and computes. Simulated
// event by event, so that bursts, full queues and idle workers come out by themselves. Shares nothing with the search
// that is judged by it. Single-threaded.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tune_sim {

using Generator = std::mt19937_64;

// Numbers around 0 with deviation 1. Plain draws for a trial; for the truth a deck of evenly spread ones that is
// shuffled again and again, whose mean is exact after each deal.
class Draws {
 public:
  Draws(Generator& generator, bool are_even) : generator_(generator), are_even_(are_even) {}
  double normal();

 private:
  Generator& generator_;
  bool are_even_;
  std::vector<double> deck_;
  std::size_t at_ = 0;
};

struct Setting {
  int batch = 0, workers = 0;
  bool pinned = false;
};

enum class End : std::uint8_t { ran, fault, out_of_memory };

// What one run of warm-up and measured steps showed.
struct Run {
  End end = End::ran;
  double seconds = 0;          // all of it, with start-up
  double consumer_rate = 0;    // images per second, as the consumer's clock has it
  double worker_rate = 0;      // what the workers can build per second, by their own busy time; 0 without workers
  double compute_seconds = 0;  // per step, with the copy to the device
};

// One machine with one job; every figure of it is drawn from the seed.
class Machine {
 public:
  explicit Machine(std::uint64_t seed);

  // The steady rate without noise; 0 for settings that do not run every time.
  double true_rate(const Setting& setting) const;
  Run run(const Setting& setting, int warmup_steps, int steps, Generator& generator) const;
  double cores() const { return cores_; }

 private:
  struct Trace {
    double begin = 0, end = 0, busy = 0, compute = 0;
    std::int64_t built = 0;
  };
  double failure_chance(const Setting& setting, End& end) const;
  double compute_seconds(const Setting& setting) const;
  double speed(int active, int workers) const;
  Trace simulate(const Setting& setting, int warmup_steps, int steps, Draws builds, Draws computes) const;

  double peak_ = 0, half_batch_ = 0;         // compute: images/s, and the batch that reaches half of it
  double worker_rate_ = 0, contention_ = 0;  // one worker alone; how each further one slows all
  double disk_rate_ = 0;                     // images/s that the storage gives at most; 0: no limit
  int cores_ = 0, prefetch_ = 2;
  double copy_pinned_ = 0, copy_unpinned_ = 0;  // seconds per image
  double build_jitter_ = 0, step_jitter_ = 0, noise_ = 0;
  double startup_ = 0;
  int fault_batch_ = 0;          // with workers, from here on; 0: none
  int memory_batch_ = 0;         // from here on; 0: none
  std::vector<Setting> faulty_;  // single settings; both values of pinned
  std::vector<int> faulty_batches_;
  double flaky_ = 1;                             // how often a fault shows
  std::vector<std::pair<int, double>> kernels_;  // batch -> how well its kernels fit
};

}  // namespace tune_sim
