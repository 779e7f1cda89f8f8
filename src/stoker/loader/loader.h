// Batches, in order, from a data set. Owns the I/O threads, the workers and the pool of slabs.
// One thread consumes (next, start_epoch); stats, errors and set_num_workers may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stoker/base/text.h"
#include "stoker/dataset/dataset.h"
#include "stoker/loader/batch.h"
#include "stoker/loader/kind_facts.h"
#include "stoker/loader/options.h"
#include "stoker/meter/counters.h"
#include "stoker/meter/ledger.h"
#include "stoker/storage/store_figures.h"
#include "stoker/transform/pass_times.h"

namespace stoker::loader {

// What is needed to go on elsewhere: counts what was handed out, not what was prefetched. Small and JSON-able.
struct State {
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;  // global samples handed out in this epoch, over all ranks
  std::uint64_t seed = 0;
  dataset::Shuffle shuffle{};
  std::uint64_t size = 0;                                       // of the data set
  std::uint64_t fingerprint = 0;                                // of the data set
  std::vector<std::pair<std::string, std::string>> settings{};  // of the data set: see dataset::Facts
};

// One bad sample; or, in stage "list", a part of the data set that could not be listed (dataset::Loss), which has no
// index, id, epoch and position.
struct SampleError {
  std::string name;  // file
  std::uint64_t index = 0, id = 0;
  std::uint64_t epoch = 0, position = 0;
  std::string stage;  // "list", "read", "decode", "transform"
  Text cause;
  std::int64_t offset = -1;  // byte in the file, where known
  std::string action;        // what was done: "raise", "skip", "replace", "zero"

  bool is_sample() const noexcept { return stage != "list"; }
  Text message() const;  // one sentence
};

struct Stats {
  std::uint64_t samples = 0, batches = 0, steps = 0, encoded_bytes = 0, decoded_bytes = 0;
  double running_s = 0;  // from the first next() to the last
  double compute_s = 0;  // the consumer, between batches
  meter::WaitSplit wait;
  double first_batch_s = 0;  // time to first batch, from construction
  meter::StageTotals fetch, prep;
  storage::StoreFigures store;           // what was asked of stores; zeros where all data is local
  meter::DepthMeter::Depth ready;        // ready batches, over time
  meter::DepthMeter::Depth bytes_ready;  // samples read and waiting for a worker
  int num_workers = 0;                   // active now
  int io_threads = 0;
  std::uint64_t memory_used = 0, memory_peak = 0, memory_limit = 0;
  std::uint64_t errors = 0;
  std::uint64_t slabs = 0, slab_bytes = 0, slabs_held = 0;
  std::uint64_t ram_bytes = 0;                                      // storage=ram: what is kept in memory by now
  std::uint64_t chunk_hits = 0, chunk_misses = 0, chunk_bytes = 0;  // decoded chunks of volumes: found, decoded; memory
  std::uint64_t seek_files = 0, seek_bytes = 0;  // JPEG files whose places are noted, and the memory that takes
};

// A call that waits asks this every Watch::kAskEvery, in the thread that called. True ends the wait with
// Error(unavailable, "interrupted"). Nothing is lost: the loader stands where it stood, and any call may follow.
using Interrupted = std::function<bool()>;

class Loader {
 public:
  // Reads samples until one can be read (recipe.cc has the limits): its kind decides how rows are made.
  // Storage::automatic may also read other parts of the data for a moment, to see how fast the disk is
  // (storage/probe.h). Throws Error. Threads start with the first epoch.
  Loader(dataset::DatasetPtr dataset, LoaderOptions options);
  // Closes. Batches still held stay valid. Threads that do not end within `timeout` (storage that never answers) are
  // left behind with their memory.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  const LoaderOptions& options() const noexcept;  // with every "auto" resolved
  const dataset::Dataset& dataset() const noexcept;
  const KindFacts& kind() const noexcept;  // of the samples, and the tensors that are made of them
  std::vector<Text> notes() const;         // things worth saying once: fallbacks, defaults that were chosen
  // What runs together over the pixels of an image, in order, and how long it took for one sample in 16. Empty: samples
  // are no images.
  std::vector<transform::Pass> passes() const;

  // Goes to the first batch of an epoch, or into the middle of one. Work already prefetched for it is kept; otherwise
  // waits for the reads that are in flight.
  void start_epoch(std::uint64_t epoch, std::uint64_t position = 0, const Interrupted& interrupted = {});
  std::uint64_t epoch() const noexcept;  // of the batches that next() gives
  std::uint64_t steps() const;           // of the epoch as entered; of a given order: those given so far
  // The next batch; null at the end of the epoch.
  BatchPtr next(const Interrupted& interrupted = {});

  // Shuffle::How::given: the consumer says the order, a few batches before it takes them. Every start_epoch() forgets
  // what was given, and expects the samples from its position on. Throws Error(usage) for a batch of more than
  // batch_size samples, and for an index beyond the data set.
  void give(std::vector<std::uint64_t> indices);
  void end_order();                    // the epoch ends after what was given
  std::uint64_t steps_wanted() const;  // how many more batches may be given now

  // The consumer wants at most `steps` further batches: nothing is read ahead of the last of them. Say it before the
  // first epoch, or at any time later; the last call holds. A next() beyond it lifts the limit.
  void expect_steps(std::uint64_t steps);

  State state() const;
  // Throws Error(usage) unless the state belongs to this data set, seed and shuffle. Starts nothing.
  void check_state(const State& state) const;
  void load_state(const State& state, const Interrupted& interrupted = {});  // check_state, keep_order, start_epoch
  // With shuffle=nodes, the rest of the state's epoch keeps its order where its nodes or batches were others, so that
  // every sample comes once; later epochs have the order of this loader. Returns whether that is so. Call it between
  // check_state and start_epoch.
  bool keep_order(const State& state);
  dataset::Shuffle shuffle_of(std::uint64_t epoch) const;  // how that epoch is mixed

  void set_num_workers(int workers);  // takes effect at once; never changes what the batches hold
  Stats stats() const;
  void reset_stats();
  // What memory_limit leaves for padded copies of batches, all that live together; 0: nobody pads (shapes=pad does).
  std::uint64_t padding_bytes() const noexcept;
  std::vector<SampleError> errors() const;  // in the order in which their batches were handed out
  // Ends and joins every thread; next() throws afterwards. Throws Error if interrupted, or if nothing moved for
  // `timeout`: threads then go on ending, and another close() waits for them again.
  void close(const Interrupted& interrupted = {});

 private:
  class Engine;
  std::shared_ptr<Engine> engine_;
};

}  // namespace stoker::loader
