#include "stoker/feed/bench_steps.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <thread>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/json.h"
#include "stoker/meter/counters.h"
#include "stoker/os/cpu.h"
#include "stoker/os/write_all.h"

namespace stoker::feed {
namespace {

constexpr double kLeastBlock = 0.04;      // seconds
constexpr std::uint64_t kBlockSteps = 2;  // at least

class Reporter {
 public:
  Reporter() {
    const char* const number = std::getenv("STOKER_REPORT_FD");
    if (number != nullptr) fd_ = std::atoi(number);
  }
  void say(const Json& json) const {
    if (fd_ < 0) return;
    const std::string line = json.dump() + "\n";
    (void)os::write_all(fd_, std::as_bytes(std::span(line.data(), line.size())));  // an error: the reader is gone
  }

 private:
  int fd_ = -1;
};

// One step: the next batch, of the next epoch if need be, and the accelerator's time.
std::uint64_t step(loader::Loader& loader, const BenchSteps& options) {
  loader::BatchPtr batch = loader.next(options.interrupted);
  if (!batch) {
    loader.start_epoch(loader.epoch() + 1, 0, options.interrupted);
    batch = loader.next(options.interrupted);
    if (!batch)
      throw Error(ErrorKind::usage, "there is no batch to measure",
                  format_text("lower {}, or keep the last batch", option("batch_size")));
  }
  const std::uint64_t rows = batch->size();
  batch.reset();
  if (options.step.count() > 0) std::this_thread::sleep_for(options.step);
  return rows;
}

Ledger ledger_of(const loader::Stats& before, const loader::Stats& after, double cpu_s, const Benched& benched,
                 bool has_step) {
  Ledger ledger;
  const auto each = [](double seconds, std::uint64_t items) {
    return items > 0 ? seconds / static_cast<double>(items) : 0.0;
  };
  // Reads from the page cache are done inside the wait for them, so it is work; from a disk it is the disk's time.
  const auto fetching = [](const loader::Stats& stats) { return stats.fetch.busy_s + stats.fetch.input_wait_s; };
  ledger.fetch_s = each(fetching(after) - fetching(before), after.fetch.items - before.fetch.items);
  ledger.prep_s = each(after.prep.busy_s - before.prep.busy_s, after.prep.items - before.prep.items);
  const double handoff = static_cast<double>(after.wait.handoff_ns - before.wait.handoff_ns) * 1e-9;
  const double compute = after.compute_s - before.compute_s;
  ledger.handoff_s = each(handoff + (has_step ? 0 : compute), benched.samples);
  ledger.compute_s = has_step ? each(compute, benched.samples) : 0;
  ledger.cpu_s = each(cpu_s, benched.samples);
  ledger.sample_bytes = each(static_cast<double>(after.encoded_bytes - before.encoded_bytes), benched.samples);
  ledger.decoded_bytes = each(static_cast<double>(after.decoded_bytes - before.decoded_bytes), benched.samples);
  const double fetch = static_cast<double>(after.wait.fetch_ns - before.wait.fetch_ns) * 1e-9;
  ledger.fetch_share = benched.seconds > 0 ? fetch / benched.seconds : 0;
  ledger.num_workers = after.num_workers;
  ledger.io_threads = after.io_threads;
  return ledger;
}

}  // namespace

void report_failure(const std::string& text, const std::string& option) {
  Reporter().say({{"event", "error"}, {"type", "stoker"}, {"text", text}, {"option", option}});
}

Benched bench_steps(loader::Loader& loader, const BenchSteps& options) {
  const Reporter reporter;
  const auto interrupted = [&] { return options.interrupted && options.interrupted(); };
  reporter.say({{"event", "hello"}});
  for (std::uint64_t i = 0; i < options.warmup_steps && !interrupted(); ++i) step(loader, options);
  reporter.say({{"event", "block"}, {"steps", options.warmup_steps}, {"samples", 0}, {"seconds", 0}, {"warmup", true}});

  Benched all;
  double corrected = 0;
  const loader::Stats at_start = loader.stats();
  const auto cpu_at_start = os::process_cpu_time();
  const auto cores_at_start = os::core_time();
  const std::int64_t ns_at_start = meter::now_ns();
  const double least_s = std::chrono::duration<double>(options.least).count();
  std::uint64_t end = std::numeric_limits<std::uint64_t>::max();  // of all steps, once it is known
  while ((all.steps < options.bench_steps || all.seconds < least_s) && !interrupted()) {
    // Only the steps count from here on. A store is not asked for batches beyond them.
    if (all.seconds >= least_s) {
      end = std::max(options.bench_steps, all.steps + kBlockSteps);
      loader.expect_steps(end - all.steps);
    }
    const loader::Stats before = loader.stats();
    const std::int64_t began = meter::now_ns();
    std::uint64_t steps = 0, samples = 0;
    double seconds = 0;
    do {
      samples += step(loader, options);
      ++steps;
      seconds = static_cast<double>(meter::now_ns() - began) * 1e-9;
      const std::uint64_t left = end - all.steps - steps;
      if (left == 0) break;
      if (left == 1) continue;  // a block of one step says little
      if (steps >= kBlockSteps && seconds >= kLeastBlock) break;
    } while (!interrupted());
    const loader::Stats after = loader.stats();
    const auto since = [](std::int64_t from, std::int64_t to) { return static_cast<double>(to - from) * 1e-9; };
    const double ready = static_cast<double>(after.ready.now) - static_cast<double>(before.ready.now);
    reporter.say({{"event", "block"},
                  {"steps", steps},
                  {"samples", samples},
                  {"seconds", seconds},
                  {"warmup", false},
                  {"compute_s", after.compute_s - before.compute_s},
                  {"fetch_s", since(before.wait.fetch_ns, after.wait.fetch_ns)},
                  {"prep_s", since(before.wait.prep_ns, after.wait.prep_ns)},
                  {"handoff_s", since(before.wait.handoff_ns, after.wait.handoff_ns)},
                  {"ready_change", ready},
                  {"queue_depth", after.ready.mean}});
    all.steps += steps;
    all.samples += samples;
    all.seconds += seconds;
    corrected += static_cast<double>(samples) + ready * static_cast<double>(samples) / static_cast<double>(steps);
  }
  if (all.seconds > 0) all.samples_per_s = corrected / all.seconds;
  const double cpu_s = std::chrono::duration<double>(os::process_cpu_time() - cpu_at_start).count();
  all.ledger = ledger_of(at_start, loader.stats(), cpu_s, all, options.step.count() > 0);
  const double wall_s = static_cast<double>(meter::now_ns() - ns_at_start) * 1e-9;
  if (const auto cores = os::core_time(); cores && cores_at_start && wall_s > 0) {
    const double idle_s = std::chrono::duration<double>(cores->idle - cores_at_start->idle).count();
    all.ledger.usable_cores = std::min(os::effective_cores().available, (cpu_s + idle_s) / wall_s);
  }
  if (!interrupted()) reporter.say({{"event", "done"}});
  return all;
}

}  // namespace stoker::feed
