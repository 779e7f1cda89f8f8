// Where a mask has label, kept small: for each block of the mask the number of its elements that are not 0, and the
// place of one of them. A patch that contains this place contains label. Built once, when a data set is opened.
// Immutable afterwards, and safe from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "stoker/dataset/volume.h"

namespace stoker::dataset {

class Foreground {
 public:
  static constexpr std::uint64_t kMostBlocks = 32768;  // of one mask, so that an index takes below 1 MiB

  // An index of nothing, for a mask of these extents.
  explicit Foreground(const Extents& extents);

  // Adds the elements of a box at `corner`: `row_bytes` and `plane_bytes` are the distances of its rows and planes.
  // Each element of the mask is added once. Boxes in another order may change the places, not the counts.
  void add(const std::byte* box, const Extents& corner, const Extents& box_extents, std::size_t element_bytes,
           std::uint64_t row_bytes, std::uint64_t plane_bytes) noexcept;
  void finish();  // forgets the blocks without label; find() may be called from then on

  std::uint64_t elements() const noexcept { return total_; }  // that are not 0
  // The place that stands for the `number`-th labelled element, in the order of the blocks; number < elements().
  Extents find(std::uint64_t number) const noexcept;

  std::uint64_t memory_bytes() const noexcept;

 private:
  struct Block {
    std::uint64_t before = 0;  // labelled elements of all blocks before this one; while it is built: of this one
    std::array<std::uint32_t, 3> place{};
  };

  Extents blocks_{};  // along each axis
  std::uint32_t shift_ = 3;
  std::vector<Block> table_;
  std::uint64_t total_ = 0;
};

// Reads the whole mask. Throws Error.
Foreground find_foreground(const Volume& mask);

}  // namespace stoker::dataset
