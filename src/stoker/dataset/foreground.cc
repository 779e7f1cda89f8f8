#include "stoker/dataset/foreground.h"

#include <algorithm>
#include <cstring>
#include <utility>

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

bool is_zero_of_any_sign(const std::byte* bytes, std::size_t count, const ZeroForm& zero) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte counts{i % zero.value_bytes == zero.sign_at ? std::uint8_t{0x7f} : std::uint8_t{0xff}};
    if ((bytes[i] & counts) != std::byte{0}) return false;
  }
  return true;
}

ZeroForm zero_of(const Volume& mask) {
  const DType type = mask.info().dtype;
  if (type != DType::f16 && type != DType::bf16 && type != DType::f32 && type != DType::f64) return {};
  const std::optional<PlainLayout> layout = mask.plain();
  return {size_of(type), layout && layout->swap_bytes ? 0 : size_of(type) - 1};
}

}  // namespace

Foreground::Foreground(const Extents& extents, std::uint64_t most_runs) : most_runs_(most_runs) {
  const auto blocks_along = [&](std::size_t axis) { return ((extents[axis] - 1) >> shift_) + 1; };
  while (blocks_along(0) * blocks_along(1) * blocks_along(2) > kMostBlocks) ++shift_;
  if (shift_ > 16) throw Error(ErrorKind::unsupported, "cannot look for label: an axis of the mask is too long");
  for (std::size_t axis = 0; axis < 3; ++axis) blocks_[axis] = blocks_along(axis);
}

bool Foreground::is_kept(const Run& run) const noexcept {
  if (halvings_ == 0) return true;
  const std::uint64_t place = std::uint64_t{run.z} << 32 | std::uint64_t{run.y} << 16 | run.x;
  return mix(run.block, place) << (64 - halvings_) == 0;
}

void Foreground::keep(const Run& run) {
  if (!is_kept(run)) return;
  runs_.push_back(run);
  while (runs_.size() > most_runs_ && halvings_ < 63) {
    ++halvings_;
    std::erase_if(runs_, [this](const Run& one) { return !is_kept(one); });
  }
}

void Foreground::add(const std::byte* box, const Extents& corner, const Extents& box_extents, std::size_t element_bytes,
                     std::uint64_t row_bytes, std::uint64_t plane_bytes, const ZeroForm& zero) {
  const std::uint64_t edge = std::uint64_t{1} << shift_, inside = edge - 1, end = corner[2] + box_extents[2];
  for (std::uint64_t z = corner[0]; z < corner[0] + box_extents[0]; ++z) {
    for (std::uint64_t y = corner[1]; y < corner[1] + box_extents[1]; ++y) {
      const std::byte* const row = box + (z - corner[0]) * plane_bytes + (y - corner[1]) * row_bytes;
      if (is_zero(row, box_extents[2] * element_bytes)) continue;
      const std::uint64_t block_row = ((z >> shift_) * blocks_[1] + (y >> shift_)) * blocks_[2];
      const auto is_label = [&](std::uint64_t x) {
        const std::byte* const element = row + (x - corner[2]) * element_bytes;
        if (is_zero(element, element_bytes)) return false;
        return zero.value_bytes == 0 || !is_zero_of_any_sign(element, element_bytes, zero);
      };
      for (std::uint64_t x = corner[2]; x < end;) {
        if (!is_label(x)) {
          ++x;
          continue;
        }
        const std::uint64_t first = x, border = std::min(end, (x | inside) + 1);
        while (x < border && is_label(x)) ++x;
        Run run;
        run.block = static_cast<std::uint32_t>(block_row + (first >> shift_));
        run.z = static_cast<std::uint16_t>(z & inside);
        run.y = static_cast<std::uint16_t>(y & inside);
        run.x = static_cast<std::uint16_t>(first & inside);
        run.last = static_cast<std::uint16_t>(x - first - 1);
        keep(run);
      }
    }
  }
}

void Foreground::finish() {
  std::sort(runs_.begin(), runs_.end());
  runs_.shrink_to_fit();
  std::uint32_t in_block = 0;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    Run& run = runs_[i];
    if (table_.empty() || table_.back().number != run.block) {
      table_.push_back({total_, run.block, static_cast<std::uint32_t>(i)});
      in_block = 0;
    }
    run.block = in_block;
    in_block += run.last + 1u;
    total_ += run.last + 1u;
  }
  table_.shrink_to_fit();
}

Extents Foreground::find(std::uint64_t number) const noexcept {
  const auto block =
      std::prev(std::upper_bound(table_.begin(), table_.end(), number,
                                 [](std::uint64_t wanted, const Block& one) { return wanted < one.before; }));
  const auto next = std::next(block);
  const auto first = runs_.begin() + block->first_run;
  const auto end = next == table_.end() ? runs_.end() : runs_.begin() + next->first_run;
  const auto wanted = static_cast<std::uint32_t>(number - block->before);
  const auto run = std::prev(std::upper_bound(
      first, end, wanted, [](std::uint32_t elements, const Run& one) { return elements < one.block; }));
  const std::uint64_t x = block->number % blocks_[2], y = block->number / blocks_[2] % blocks_[1],
                      z = block->number / (blocks_[1] * blocks_[2]);
  return {(z << shift_) + run->z, (y << shift_) + run->y, (x << shift_) + run->x + (wanted - run->block)};
}

std::uint64_t Foreground::memory_bytes() const noexcept {
  return table_.capacity() * sizeof(Block) + runs_.capacity() * sizeof(Run);
}

Foreground find_foreground(const Volume& mask, const std::function<void()>& count) {
  Foreground foreground(mask.info().extents);
  const ZeroForm zero = zero_of(mask);
  read_boxes(mask, [&](const Extents& corner, const Extents& extents, const std::byte* box, std::uint64_t row_bytes,
                       std::uint64_t plane_bytes) {
    foreground.add(box, corner, extents, mask.info().element_bytes(), row_bytes, plane_bytes, zero);
    if (count) count();
  });
  foreground.finish();
  return foreground;
}

}  // namespace stoker::dataset
