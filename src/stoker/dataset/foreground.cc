#include "stoker/dataset/foreground.h"

#include <algorithm>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/hash.h"
#include "stoker/dataset/volume_box.h"

namespace stoker::dataset {
namespace {

bool is_zero(const std::byte* bytes, std::size_t count) noexcept {
  while (count >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, 8);
    if (word != 0) return false;
    bytes += 8, count -= 8;
  }
  while (count > 0 && *bytes == std::byte{0}) ++bytes, --count;
  return count == 0;
}

}  // namespace

Foreground::Foreground(const Extents& extents) {
  const auto blocks_along = [&](std::size_t axis) { return ((extents[axis] - 1) >> shift_) + 1; };
  while (blocks_along(0) * blocks_along(1) * blocks_along(2) > kMostBlocks) ++shift_;
  for (std::size_t axis = 0; axis < 3; ++axis) blocks_[axis] = blocks_along(axis);
  table_.resize(blocks_[0] * blocks_[1] * blocks_[2]);
}

void Foreground::add(const std::byte* box, const Extents& corner, const Extents& box_extents, std::size_t element_bytes,
                     std::uint64_t row_bytes, std::uint64_t plane_bytes) noexcept {
  const std::uint64_t edge = std::uint64_t{1} << shift_, end = corner[2] + box_extents[2];
  for (std::uint64_t z = 0; z < box_extents[0]; ++z) {
    for (std::uint64_t y = 0; y < box_extents[1]; ++y) {
      const std::byte* const row = box + z * plane_bytes + y * row_bytes;
      if (is_zero(row, box_extents[2] * element_bytes)) continue;
      const std::uint64_t at_z = corner[0] + z, at_y = corner[1] + y;
      Block* const blocks = table_.data() + ((at_z >> shift_) * blocks_[1] + (at_y >> shift_)) * blocks_[2];
      for (std::uint64_t first = corner[2]; first < end;) {
        const std::uint64_t next = std::min(end, (first / edge + 1) * edge);
        const std::byte* const run = row + (first - corner[2]) * element_bytes;
        std::uint64_t count = 0;
        for (std::uint64_t x = 0; x < next - first; ++x) count += !is_zero(run + x * element_bytes, element_bytes);
        if (count > 0) {
          Block& block = blocks[first >> shift_];
          block.before += count;
          // Each element stands for its block with the same probability: a new run takes over by its share.
          const std::uint64_t draw = mix(mix(at_z, at_y), first);
          if (draw % block.before < count) {
            std::uint64_t skip = (draw >> 32) % count, x = 0;
            for (;; ++x) {
              if (!is_zero(run + x * element_bytes, element_bytes) && skip-- == 0) break;
            }
            block.place = {static_cast<std::uint32_t>(at_z), static_cast<std::uint32_t>(at_y),
                           static_cast<std::uint32_t>(first + x)};
          }
          total_ += count;
        }
        first = next;
      }
    }
  }
}

void Foreground::finish() {
  std::vector<Block> kept;
  std::uint64_t before = 0;
  for (const Block& block : table_) {
    if (block.before == 0) continue;
    kept.push_back({before, block.place});
    before += block.before;
  }
  kept.shrink_to_fit();
  table_ = std::move(kept);
}

Extents Foreground::find(std::uint64_t number) const noexcept {
  const auto after = std::upper_bound(table_.begin(), table_.end(), number,
                                      [](std::uint64_t wanted, const Block& block) { return wanted < block.before; });
  const Block& block = *(after - 1);
  return {block.place[0], block.place[1], block.place[2]};
}

std::uint64_t Foreground::memory_bytes() const noexcept {
  return table_.capacity() * sizeof(Block);
}

Foreground find_foreground(const Volume& mask) {
  Foreground foreground(mask.info().extents);
  read_boxes(mask, [&](const Extents& corner, const Extents& extents, const std::byte* box, std::uint64_t row_bytes,
                       std::uint64_t plane_bytes) {
    foreground.add(box, corner, extents, mask.info().element_bytes(), row_bytes, plane_bytes);
  });
  foreground.finish();
  return foreground;
}

}  // namespace stoker::dataset
