// Makes the rows of a view: resizes one after another, and padding around them. Private to the image*.cc files.
#pragma once

#include <algorithm>
#include <cstring>

#include "stoker/transform/image_program.h"
#include "stoker/transform/resize.h"
#include "stoker/transform/take.h"

namespace stoker::transform {

// Keeps the rows of a resize as the image that the next one takes.
template <typename T, typename Resized>
bool keep_rows(Resized& resizer, const Rect& keep, std::uint32_t channels, Scratch& scratch, Part<T>& part) noexcept {
  const std::size_t elements = std::size_t{keep.width} * channels;
  T* const rows = take<T>(scratch, elements * keep.height);
  if (rows == nullptr) return false;
  for (std::uint32_t y = 0; y < keep.height; ++y) {
    std::memcpy(rows + y * elements, resizer.row(y), elements * sizeof(T));
  }
  part = {rows, elements, keep.x, keep.y, keep.width, keep.height, channels};
  return true;
}

// Runs the resizes from the `first` on and hands each row of the view to `store(y, row)`.
template <typename T, typename Store>
Result run_resizes(const ImageProgram& plan, const Draw& draw, const Needs& needs, std::uint32_t first, Part<T> source,
                   Scratch& scratch, Store store) noexcept {
  for (std::uint32_t i = first; i < plan.resizes; ++i) {
    const Resizing& r = needs.resizings[i];
    source.x -= draw.steps[i].x;  // coordinates of the crop that is resized
    source.y -= draw.steps[i].y;
    Resizer<T> resizer;
    const Result prepared = resizer.prepare(source, r, scratch);
    if (!prepared.ok()) return prepared;
    if (i + 1 == plan.resizes) {
      for (std::uint32_t y = 0; y < r.keep.height; ++y) store(y, resizer.row(y));
      return {};
    }
    if (!keep_rows(resizer, r.keep, source.channels, scratch, source)) return kNoRoom;
  }
  const Rect& keep = draw.steps[plan.resizes];
  for (std::uint32_t y = 0; y < keep.height; ++y) store(y, source.at(keep.x, std::int64_t{keep.y} + y));
  return {};
}

// Makes the view with `run(store)`, which hands over the rows of the image. Where the view is padded, its rows are
// completed with `blank`.
template <typename T, typename Store, typename Run>
Result run_padded(const Draw& draw, const StoreShape& shape, T blank, Scratch& scratch, Store store,
                  const Run& run) noexcept {
  if (!draw.is_padded) return run(store);
  const std::size_t elements = std::size_t{shape.width} * shape.channels;
  T* const line = take<T>(scratch, elements);
  if (line == nullptr) return kNoRoom;
  std::fill_n(line, elements, blank);
  const Rect& inside = draw.inside;
  for (std::uint32_t y = 0; y < shape.height; ++y) {
    if (y < inside.y || y >= inside.y + inside.height) store(y, line);
  }
  if (inside.height == 0) return {};
  return run([&](std::uint32_t y, const T* row) {
    std::copy_n(row, std::size_t{inside.width} * shape.channels, line + std::size_t{inside.x} * shape.channels);
    store(inside.y + y, line);
  });
}

}  // namespace stoker::transform
