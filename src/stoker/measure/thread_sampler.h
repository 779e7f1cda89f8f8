// What the kernel tells of each thread of a job: running, ready without a core, blocked in reads from a disk, asleep,
// and the bytes it read. For pipelines of threads that have no loader. Called by one thread, about twice a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stoker/base/json.h"

namespace stoker::measure {

// Shares are of the time since the thread was first seen; together they are 1.
struct ThreadFacts {
  int pid = 0, thread = 0;
  std::string name = {};
  double seconds = 0;
  double running = 0, ready = 0, blocked = 0, asleep = 0;  // asleep: network, locks, queues, timers
  std::optional<std::uint64_t> read_bytes = {};            // from the disk

  bool is_at_work() const noexcept { return running + ready + blocked >= 0.05 || read_bytes.value_or(0) > 0; }
};

class ThreadSampler {
 public:
  explicit ThreadSampler(std::string root = "/") : root_(std::move(root)) {}

  // Threads of `pid` and of all processes below it. At most every half second, and of at most 64 threads of a process.
  void sample(int pid, std::int64_t now_ns);
  std::vector<ThreadFacts> facts() const;  // the busiest first

 private:
  struct Seen {
    std::string name;
    std::int64_t first_ns = 0, last_ns = 0;
    std::chrono::nanoseconds cpu{0}, cpu_first{0}, delay{0}, delay_first{0};
    std::uint64_t readings = 0, blocked = 0, read = 0, read_first = 0;
    bool has_read = false;
  };
  std::string root_;
  std::map<std::pair<int, int>, Seen> seen_;
  std::int64_t sampled_ns_ = 0;
};

// "8 threads at work: 5 % of their time running, 1 % ready without a core, 80 % blocked in reads from a disk, 14 %
// asleep; 210 MB/s from the disk". Empty: no thread is at work.
std::string threads_line(const std::vector<ThreadFacts>& threads);
// What a job without a loader most likely waits for, as far as its threads show. Empty: they do not. `has_model`: the
// job may train on these threads, or spin while it waits for a device, so busy threads need not be input.
std::string threads_verdict(const std::vector<ThreadFacts>& threads, double cores, bool has_model);
Json to_json(const std::vector<ThreadFacts>& threads);

}  // namespace stoker::measure
