// Batches, in order, from a data set. Owns the I/O threads, the workers and the pool of slabs.
// One thread consumes (next, start_epoch); stats, errors and set_num_workers may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stoker/dataset/dataset.h"
#include "stoker/loader/batch.h"
#include "stoker/loader/options.h"
#include "stoker/measure/counters.h"
#include "stoker/measure/ledger.h"

namespace stoker::loader {

// What is needed to go on elsewhere: counts what was handed out, not what was prefetched. Small and JSON-able.
struct State {
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;  // global samples handed out in this epoch, over all ranks
  std::uint64_t seed = 0;
  dataset::Shuffle shuffle{};
  std::uint64_t size = 0;         // of the data set
  std::uint64_t fingerprint = 0;  // of the data set
};

// One bad sample.
struct SampleError {
  std::string name;  // file
  std::uint64_t index = 0, id = 0;
  std::uint64_t epoch = 0, position = 0;
  std::string stage;  // "read", "decode", "transform"
  std::string cause;
  std::int64_t offset = -1;  // byte in the file, where known
  std::string action;        // what was done: "raise", "skip", "replace", "zero"

  std::string message() const;  // one sentence
};

struct Stats {
  std::uint64_t samples = 0, batches = 0, steps = 0, encoded_bytes = 0, decoded_bytes = 0;
  double running_s = 0;  // from the first next() to the last
  double compute_s = 0;  // the consumer, between batches
  measure::WaitSplit wait;
  double first_batch_s = 0;  // time to first batch, from construction
  measure::StageTotals fetch, prep;
  measure::DepthMeter::Depth ready;        // ready batches, over time
  measure::DepthMeter::Depth bytes_ready;  // samples read and waiting for a worker
  int num_workers = 0;                     // active now
  int io_threads = 0;
  std::uint64_t memory_used = 0, memory_peak = 0, memory_limit = 0;
  std::uint64_t errors = 0;
  std::uint64_t slabs = 0, slab_bytes = 0, slabs_held = 0;
  std::uint64_t ram_bytes = 0;                   // storage=ram: what is kept in memory by now
  std::uint64_t seek_files = 0, seek_bytes = 0;  // JPEG files whose places are noted, and the memory that takes
};

class Loader {
 public:
  // Opens nothing but the first sample, whose kind decides the plan. Throws Error. Threads start with the first epoch.
  Loader(dataset::DatasetPtr dataset, LoaderOptions options);
  ~Loader();  // joins every thread; batches still held stay valid
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  const LoaderOptions& options() const noexcept;  // with every "auto" resolved
  const dataset::Dataset& dataset() const noexcept;
  const transform::Plan* plan() const noexcept;  // null with Decode::none
  std::vector<std::string> notes() const;        // things worth saying once: fallbacks, defaults that were chosen

  // Goes to the first batch of an epoch, or into the middle of one. Work already prefetched for it is kept.
  void start_epoch(std::uint64_t epoch, std::uint64_t position = 0);
  std::uint64_t epoch() const noexcept;  // of the batches that next() gives
  std::uint64_t steps() const noexcept;  // of the epoch as entered
  // The next batch; null at the end of the epoch. `interrupted` is asked about every 50 ms while waiting: true ends the
  // wait with Error(unavailable, "interrupted"); nothing is lost, next() may be called again.
  BatchPtr next(const std::function<bool()>& interrupted = {});

  State state() const;
  // Checks that the state belongs to this data set and seed (throws Error(usage)), then start_epoch.
  void load_state(const State& state);

  void set_num_workers(int workers);  // takes effect at once; never changes what the batches hold
  Stats stats() const;
  void reset_stats();
  std::vector<SampleError> errors() const;  // in order of epoch and position
  void close();                             // what the destructor does; next() throws afterwards

 private:
  class Engine;
  std::shared_ptr<Engine> engine_;
};

}  // namespace stoker::loader
