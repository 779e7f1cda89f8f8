// Which sample is next: a pure function of (seed, epoch, position). No state, O(1) memory, O(1) seek, the same global
// sequence for any number of ranks. Immutable; safe from any thread.
//
// Shuffle::How::nodes keeps samples on their node over the epochs, and so its sequence depends on the number of nodes:
//
//   homes     a permutation of (seed) deals the samples out to the nodes, one N-th each
//   epoch     each node's samples are mixed by a permutation of (seed, epoch, node)
//   position  each step takes `of_node` samples of node 0, then of node 1, ...: the ranks of a node are neighbours.
//   What
//             is left after the last whole step follows in the order of the nodes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stoker/base/permutation.h"

namespace stoker::dataset {

enum class LastBatch : std::uint8_t {
  keep,  // short: what is left is shared out evenly (a rank gets none only if less than one each is left)
  drop,  // left out
  pad,   // filled to batch_size from the start of the epoch, so that all shapes are equal; the fill is marked not valid
};

// How the samples of an epoch are mixed.
struct Shuffle {
  enum class How : std::uint8_t {
    off,
    full,    // any sample may come anywhere
    blocks,  // neighbours are read together and mixed with those of other places: for disks and stores that like it so
    given,   // the consumer gives the order, batch by batch; Order then says only what stands in for bad samples
    nodes,   // each node mixes samples of its own, the same in every epoch: for caches on the nodes
  } how = How::off;
  // blocks: how many neighbours stay together, and how many samples (whole blocks) are mixed. 0: the loader chooses.
  std::uint64_t block = 0, window = 0;
  // nodes: how many there are, and how many samples of a step each gets. 0: the loader takes them from the ranks.
  std::uint64_t nodes = 0, of_node = 0;

  Shuffle() noexcept = default;
  Shuffle(bool full) noexcept : how(full ? How::full : How::off) {}  // NOLINT: true is what people write
  Shuffle(How chosen, std::uint64_t neighbours, std::uint64_t mixed) noexcept
      : how(chosen), block(neighbours), window(mixed) {}
  static Shuffle by_node(std::uint64_t nodes = 0, std::uint64_t of_node = 0) noexcept {
    Shuffle shuffle(How::nodes, 0, 0);
    shuffle.nodes = nodes, shuffle.of_node = of_node;
    return shuffle;
  }
  friend bool operator==(const Shuffle&, const Shuffle&) = default;
};

std::string text(const Shuffle& shuffle);      // "off", "full", "blocks", "blocks:32:4096", "nodes:2:64" or "given"
bool is_switch(const Shuffle& shuffle);        // off or full: tools write it as false or true
Shuffle parse_shuffle(std::string_view text);  // throws Error(usage), also for "given", which no option names

struct OrderOptions {
  std::uint64_t size = 0;  // samples
  Shuffle shuffle{};       // blocks: with a block of at least 1; nodes: with both counts
  std::uint64_t seed = 0;
  std::uint64_t batch_size = 1;  // per rank
  std::uint64_t rank = 0, world_size = 1;
  LastBatch last_batch = LastBatch::keep;
};

// The samples of one batch: global positions [first, first + count), the tail of which may be padding.
struct BatchRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t valid = 0;  // the first `valid` are this epoch's own; the others are padding
};

// One epoch, entered at global position `start` (a multiple of nothing: a resumed run may start anywhere).
class Order {
 public:
  Order(const OrderOptions& options, std::uint64_t epoch, std::uint64_t start = 0);

  std::uint64_t steps() const noexcept { return steps_; }           // batches left, the same on every rank
  BatchRange batch(std::uint64_t step) const noexcept;              // this rank's part of step `step` < steps()
  std::uint64_t position_after(std::uint64_t step) const noexcept;  // global position once `step` is handed out
  std::uint64_t sample(std::uint64_t position) const noexcept;      // sample index; padding wraps round
  std::uint64_t position_of(std::uint64_t sample) const noexcept;   // the inverse; sample < size
  // Samples of one window are mixed with each other only; windows follow one another. 0 unless blocks are shuffled.
  std::uint64_t window(std::uint64_t position) const noexcept;
  // A stand-in for the sample at `position`, for try 0, 1, ...: the same on every run and every rank count.
  std::uint64_t replacement(std::uint64_t position, std::uint32_t attempt) const noexcept;

 private:
  // The positions that are mixed with each other, and how.
  struct Mixed {
    std::uint64_t first = 0;
    Permutation permutation;
  };
  Mixed mixed_with(std::uint64_t position) const noexcept;
  std::uint64_t sample_of_blocks(std::uint64_t position) const noexcept;
  std::uint64_t position_in_blocks(std::uint64_t sample) const noexcept;
  Mixed home_of(std::uint64_t node) const noexcept;
  std::uint64_t sample_of_node(std::uint64_t position) const noexcept;
  std::uint64_t position_on_node(std::uint64_t sample) const noexcept;

  OrderOptions options_;
  std::uint64_t epoch_;
  std::uint64_t start_;
  std::uint64_t steps_;
  std::uint64_t blocks_ = 0;   // whole ones; what is left over belongs to the last window
  std::uint64_t windows_ = 1;  // of as many blocks, or one more
  std::uint64_t whole_ = 0;    // nodes: samples of a node in the whole steps of an epoch
  Permutation permutation_;    // of samples, or of blocks; nodes: which sample is at home where
};

}  // namespace stoker::dataset
