// Where a mask has label: every run of labelled elements, by blocks of the mask, so that any of them can be drawn and
// neighbours in the order of numbers are neighbours in space. Built once, when a data set is opened. Immutable
// afterwards, and safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "stoker/dataset/volume.h"

namespace stoker::dataset {

// Which bytes of a mask mean 0. Of floats the sign does not count: -0.0 is no label.
struct ZeroForm {
  std::size_t value_bytes = 0;  // of a float; 0: the mask has no floats
  std::size_t sign_at = 0;      // the byte of a float that has its sign
};

class Foreground {
 public:
  static constexpr std::uint64_t kMostBlocks = 32768;  // of one mask
  static constexpr std::uint64_t kMostRuns = 1 << 20;  // of one mask, so that an index takes at most 14 MiB

  // An index of nothing, for a mask of these extents. Above `most_runs` runs, a random half of them stands for all, and
  // again a half of these, and so on: the same ones each time.
  explicit Foreground(const Extents& extents, std::uint64_t most_runs = kMostRuns);

  // Adds the elements of a box at `corner`: `row_bytes` and `plane_bytes` are the distances of its rows and planes.
  // Each element of the mask is added once. The order of boxes does not matter, unless there are too many runs.
  void add(const std::byte* box, const Extents& corner, const Extents& box_extents, std::size_t element_bytes,
           std::uint64_t row_bytes, std::uint64_t plane_bytes, const ZeroForm& zero = {});
  void finish();  // find() may be called from then on

  std::uint64_t elements() const noexcept { return total_; }  // that are not 0 and can be drawn
  bool is_thinned() const noexcept { return halvings_ > 0; }  // some cannot be drawn
  // The place of the `number`-th labelled element, in the order of the blocks; number < elements().
  Extents find(std::uint64_t number) const noexcept;

  std::uint64_t memory_bytes() const noexcept;

 private:
  struct Block {
    std::uint64_t before = 0;  // labelled elements of all blocks before this one
    std::uint32_t number = 0, first_run = 0;
  };
  // Labelled elements side by side along x. They do not cross the border of a block.
  struct Run {
    std::uint32_t block = 0;            // while the index is built; then the elements of its block before this run
    std::uint16_t z = 0, y = 0, x = 0;  // inside the block
    std::uint16_t last = 0;             // elements - 1
    friend auto operator<=>(const Run&, const Run&) = default;
  };

  void keep(const Run& run);
  bool is_kept(const Run& run) const noexcept;

  Extents blocks_{};  // along each axis
  std::uint32_t shift_ = 3;
  std::uint64_t most_runs_;
  std::uint32_t halvings_ = 0;
  std::vector<Run> runs_;
  std::vector<Block> table_;
  std::uint64_t total_ = 0;
};

// Reads the whole mask, and calls `count` after each part of it: a plane or a chunk. Throws Error, and what `count`
// throws.
Foreground find_foreground(const Volume& mask, const std::function<void()>& count = {});

}  // namespace stoker::dataset
