#include "stoker/loader/slab_layout.h"

#include <utility>

#include "stoker/base/round.h"

namespace stoker::loader {
namespace {

constexpr std::size_t kSlabAlign = 4096;
constexpr std::uint64_t kRowAlign = 64;

}  // namespace

SlabLayout lay_out(const Recipe& recipe, std::uint64_t rows, std::uint64_t length) noexcept {
  SlabLayout layout;
  std::size_t at = 0;
  const auto place = [&](std::size_t bytes, std::size_t align) {
    at = round_up(at, align);
    return std::exchange(at, at + bytes);
  };
  for (std::size_t o = 0; o < recipe.outputs().size(); ++o) {
    layout.row_bytes[o] = recipe.packs_rows() ? 0 : recipe.row_bytes(o, length);
    layout.outputs[o] = place(recipe.packs_rows() ? length : rows * layout.row_bytes[o], kSlabAlign);
  }
  layout.labels = place(rows * 8 * recipe.label_count(), 64);
  layout.real_labels = place(rows * 4 * recipe.label_count(), 64);
  layout.ids = place(rows * 8, 64);
  layout.indices = place(rows * 8, 64);
  layout.lengths = place(rows * 8, 64);
  layout.places = place(rows * 8, 64);
  layout.valid = place(rows, 64);
  layout.soft_labels = place(rows * 4 * recipe.soft_classes(), 64);
  layout.total = at;
  return layout;
}

std::uint64_t packed_bytes(std::uint64_t length) noexcept {
  return round_up(length, kRowAlign);
}

}  // namespace stoker::loader
