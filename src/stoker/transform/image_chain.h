// What comes after the first geometry of a view of an 8-bit image: augmentations, further geometry, and the store into
// the slot; image_deep.h is the same for 16 bits. Private to the image*.cc files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stoker/transform/image_program.h"
#include "stoker/transform/planes.h"

namespace stoker::transform {

// Draws augmentations into `sink`. `size` becomes that of what leaves them. `pass` is the number of the first of them.
constexpr std::size_t kNoPass = SIZE_MAX;  // nothing is done to pixels, and nothing is timed
Result draw_all(const std::vector<Augment>& augments, std::uint64_t key, ImageSize& size, ActionSink& sink,
                std::size_t pass = kNoPass) noexcept;

// What the augmentations of one program take, without doing them.
struct ChainRoom {
  std::uint64_t elements = 0;  // of the largest image
  std::uint64_t extra = 0;     // bytes beside the canvas, at the action that takes most
};
// `size` becomes that of what leaves the augmentations.
Result measure_chain(const ImageProgram& plan, std::uint64_t key, ImageSize& size, ChainRoom& room) noexcept;

// Takes a canvas that is large enough for what the augmentations of `plan` make of an image of that size.
Result open_canvas(const ImageProgram& plan, std::uint64_t key, const ImageSize& size, Canvas& canvas,
                   Scratch& scratch) noexcept;

// Runs the rest of the chain, from the augmentations of `plan` on, and stores the view. `pass` is the number of the
// first of them.
Result finish_chain(const ImageProgram& plan, std::uint64_t key, std::size_t pass, Canvas& canvas, std::byte* slot,
                    Scratch& scratch) noexcept;

// RandomErasing, and operations on values, of a view that is stored.
Result erase_view(const ImageProgram& last, std::uint64_t key, std::size_t pass, std::byte* slot) noexcept;

// At most what the two, or image_deep.h, take from the scratch.
std::uint64_t chain_bytes(const ImageProgram& plan, const Draw& draw) noexcept;
// At most what the resizes of one program take; image_memory.cc has it.
std::uint64_t geometry_bytes(const ImageProgram& plan, const Draw& draw, std::uint32_t scale) noexcept;

// Makes a view. `render(shape, store)` hands the rows of the first geometry to store(y, row); they make an image of
// that shape. `pass` is the number of this pass.
template <typename Render>
Result make_view(const ImageProgram& plan, const Draw& draw, std::size_t pass, std::byte* slot, Scratch& scratch,
                 const Render& render) noexcept {
  if (!plan.is_chain()) {
    const void* const table = plan.table.empty() ? nullptr : plan.table.data();
    const auto run = [&] {
      const PassTimer timer(pass);
      return render(plan.store, [&](std::uint32_t y, const std::uint8_t* row) {
        store_row(plan.store, row, y, draw.flip, table, slot);
      });
    };
    const Result result = run();
    return result.ok() ? erase_view(plan, draw.key, pass + 1, slot) : result;
  }
  Canvas canvas;
  const Result opened = open_canvas(plan, draw.key, {draw.width, draw.height, plan.channels}, canvas, scratch);
  if (!opened.ok()) return opened;
  const StoreShape shape{draw.width, draw.height, plan.channels, true, DType::u8, {}};
  auto* const into = reinterpret_cast<std::byte*>(canvas.image().data);
  const auto run = [&] {
    const PassTimer timer(pass);
    return render(
        shape, [&](std::uint32_t y, const std::uint8_t* row) { store_row(shape, row, y, draw.flip, nullptr, into); });
  };
  const Result result = run();
  return result.ok() ? finish_chain(plan, draw.key, pass + 1, canvas, slot, scratch) : result;
}

}  // namespace stoker::transform
