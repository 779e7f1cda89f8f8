// What one loader does, settled before any of its threads starts: the data set, the options with every "auto" resolved,
// the recipe, and the shares of memory. The parts of the engine read it from any thread without a lock. Only the engine
// changes it later, and only `options.num_workers`, `options.io_threads` and `notes`, which no other part reads, and
// the order of the epoch that a state continues.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "stoker/dataset/order.h"
#include "stoker/loader/device.h"
#include "stoker/loader/memory_division.h"
#include "stoker/loader/recipe.h"
#include "stoker/loader/seek_store.h"
#include "stoker/os/local_ranks.h"
#include "stoker/storage/hand_over.h"
#include "stoker/storage/location.h"
#include "stoker/storage/object_cache.h"

namespace stoker::loader {

struct Job {
  // Looks at the first samples. Throws Error, also where memory_limit is too small.
  Job(dataset::DatasetPtr data, const LoaderOptions& asked);

  dataset::Order make_order(std::uint64_t epoch, std::uint64_t position) const;
  // How this epoch is mixed: as the options say, or for shuffle=nodes as the state that it continues says.
  dataset::Shuffle shuffle_of(std::uint64_t epoch) const;
  // The rest of this epoch keeps the order of a state whose nodes or batches were others; none: no epoch does.
  struct Kept {
    std::uint64_t epoch = 0;
    dataset::Shuffle shuffle{};
    friend bool operator==(const Kept&, const Kept&) = default;
  };
  bool keep_order(const std::optional<Kept>& kept);  // whether that changes anything
  bool is_given() const noexcept { return options.shuffle.how == dataset::Shuffle::How::given; }  // the order
  // How many batches of a given order are worth knowing beyond the one handed out last: those being made, and what
  // is read ahead of them.
  std::uint64_t steps_ahead() const noexcept;
  std::uint64_t slab_bytes_for(std::uint64_t length) const noexcept;    // of a batch whose rows have this length
  std::uint64_t packed_slab_bytes(std::uint64_t bytes) const noexcept;  // of one whose packed rows take this together
  // storage=ram reads what is not in memory yet past the page cache, which is being filled in order meanwhile.
  const storage::Source* direct_source() const noexcept;  // one that is read past the page cache; null: none is
  bool reads_direct() const noexcept;
  bool is_far() const noexcept;                 // the data lies in a store, or a part of it
  std::uint64_t thread_depth() const noexcept;  // requests in flight of one I/O thread
  // storage=ram keeps samples one by one, as they are read; false: the sources that they lie in. With a disk cache the
  // samples of a shard are kept one by one too, so that both caches hold the same bytes.
  bool keeps_samples() const noexcept { return dataset->sources().empty() || (cache && !many_parts); }

  dataset::DatasetPtr dataset;
  LoaderOptions options;
  Recipe recipe;
  std::vector<Text> notes;   // things worth saying once
  std::int64_t made_ns = 0;  // when the loader was made
  std::shared_ptr<DeviceRuntime> device;
  os::LocalRanks ranks;        // processes of this job that share the machine
  bool auto_memory = false;    // memory_limit was not given
  bool shares_ram = false;     // storage=ram: the ranks hold samples once, together
  std::vector<int> numa_cpus;  // where the threads run; empty: anywhere
  bool auto_workers = false;
  bool is_inline = false;    // num_workers = 0: the consumer decodes
  int max_workers = 1;       // at the start; set_num_workers() does not change what was divided by it
  bool in_place = false;     // rows are read straight into the slab
  bool many_parts = false;   // rows have several parts
  MemoryFacts memory_facts;  // what the shares were made from
  Division memory;
  // Of memory_limit: for padded copies of batches, which their consumer makes (shapes=pad). The division has the rest.
  std::uint64_t padding_bytes = 0;
  SeekOptions seek_options;
  std::shared_ptr<storage::ObjectCache> cache;  // of objects of a store; null: none are kept
  // What opening the data set has left in memory for the first epoch; null: nothing.
  std::shared_ptr<storage::HandOver> hand_over;

 private:
  struct Sizes {
    std::uint64_t mean = 0, median = 0;
  };
  Sizes usual_bytes() const noexcept;  // of some samples, evenly spread
  std::uint64_t encoded_bytes(std::uint64_t index) const noexcept;
  void note_ranks();
  void choose_threads(bool sweeps);
  void choose_io_depth();
  void open_cache();
  void choose_blocks();
  void choose_nodes();
  void choose_seek();
  void choose_ram();
  void divide(bool sweeps);

  mutable std::mutex kept_mutex_;
  std::optional<Kept> kept_;
};

}  // namespace stoker::loader
