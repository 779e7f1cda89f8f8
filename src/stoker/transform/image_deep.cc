#include "stoker/transform/image_deep.h"

#include <algorithm>
#include <cassert>

#include "stoker/transform/deep_actions.h"
#include "stoker/transform/image_chain.h"
#include "stoker/transform/image_rows.h"

namespace stoker::transform {
namespace {

// Runs the resizes from stored words. `line` has room for a row of the view.
template <typename Store>
Result run_words(const ImageProgram& plan, const Draw& draw, const Needs& needs, DeepPart source, const Levels& levels,
                 float* line, Scratch& scratch, Store store) noexcept {
  if (plan.resizes == 0) {
    const Rect& keep = draw.steps[0];
    for (std::uint32_t y = 0; y < keep.height; ++y) {
      level_row(source.at(keep.x, std::int64_t{keep.y} + y), std::size_t{keep.width} * source.channels, levels, line);
      store(y, line);
    }
    return {};
  }
  const Resizing& r = needs.resizings[0];
  source.x -= draw.steps[0].x;
  source.y -= draw.steps[0].y;
  DeepResizer resizer;
  const Result prepared = resizer.prepare(source, levels, r, scratch);
  if (!prepared.ok()) return prepared;
  if (plan.resizes == 1) {
    for (std::uint32_t y = 0; y < r.keep.height; ++y) store(y, resizer.row(y));
    return {};
  }
  Part<float> part;
  if (!keep_rows(resizer, r.keep, source.channels, scratch, part)) return kNoRoom;
  return run_resizes(plan, draw, needs, 1, part, scratch, store);
}

void interleave_row(const FloatPlanes& from, std::uint32_t y, float* row) noexcept {
  for (std::uint32_t c = 0; c < from.channels; ++c) {
    const float* const in = from.row(c, y);
    for (std::size_t x = 0; x < from.width; ++x) row[x * from.channels + c] = in[x];
  }
}

// One view, program by program.
class DeepView {
 public:
  DeepView(std::uint64_t key, double offset, std::byte* slot, Scratch& scratch) noexcept
      : key_(key), offset_(offset), slot_(slot), scratch_(scratch) {}

  Result from_words(const ImageProgram& plan, const Draw& draw, const DeepPart& source) noexcept {
    Levels levels = levels_of(plan, draw);
    if (plan.divides && !plan.is_chain()) levels.what = Levels::What::share;
    const Needs needs = needs_of(plan, draw);
    return run(plan, draw, plan.first_pass, levels, levels.what == Levels::What::share,
               [&](float* line, const auto& rows) {
                 return run_words(plan, draw, needs, source, levels, line, scratch_, rows);
               });
  }

 private:
  // What becomes of values before they are resized.
  Levels levels_of(const ImageProgram& plan, const Draw& draw) const noexcept {
    if (!plan.has_window) return {};
    return {plan.window_last ? Levels::What::as_stored : Levels::What::window,
            static_cast<float>(draw.window_low + offset_), draw.window_scale};
  }

  // `geometry(line, rows)` hands the rows of the geometry to rows(y, row). `is_divided`: values are shares already.
  template <typename Geometry>
  Result run(const ImageProgram& plan, const Draw& draw, std::size_t pass, const Levels& levels, bool is_divided,
             const Geometry& geometry) noexcept {
    const std::size_t elements = std::size_t{draw.width} * plan.channels;
    float* const line = take<float>(scratch_, elements);
    if (line == nullptr) return kNoRoom;
    FloatCanvas canvas;
    StoreShape shape = plan.store;
    if (plan.is_chain()) {
      const ImageSize size{draw.width, draw.height, plan.channels};
      ImageSize after = size;
      ChainRoom room;
      if (const Result result = measure_chain(plan, key_, after, room); !result.ok()) return result;
      if (!canvas.take_from(scratch_, room.elements)) return kNoRoom;
      canvas.shape(size.width, size.height, size.channels);
      shape = {size.width, size.height, size.channels, true, DType::f32, {}};
    }
    auto* const into = plan.is_chain() ? reinterpret_cast<std::byte*>(canvas.image().data) : slot_;
    const auto store = [&](std::uint32_t y, const float* row) {
      if (plan.window_last) {
        window_row(row, elements, levels.shift, levels.scale, line);
        row = line;
      }
      if (!plan.is_chain()) row = finished(plan, row, elements, is_divided, line);
      store_row(shape, row, y, draw.flip, into);
    };
    // Padding is 0 where CenterCrop stands: after the window, or before it.
    float blank = 0;
    if (plan.has_window && plan.window_last && draw.pads_after_window) blank = levels.shift;
    if (plan.has_window && !plan.window_last && !draw.pads_after_window)
      blank = std::clamp((0 - levels.shift) * levels.scale, 0.0F, 1.0F);
    const auto run_geometry = [&] {
      const PassTimer timer(pass);
      return run_padded(draw, shape, blank, scratch_, store, [&](const auto& rows) { return geometry(line, rows); });
    };
    if (const Result result = run_geometry(); !result.ok()) return result;
    return plan.is_chain() ? augment(plan, pass + 1, canvas) : erase_view(plan, key_, pass + 1, slot_);
  }

  Result augment(const ImageProgram& plan, std::size_t pass, FloatCanvas& canvas) noexcept {
    DeepActionRunner runner(canvas, scratch_);
    ImageSize size{canvas.image().width, canvas.image().height, canvas.image().channels};
    if (const Result result = draw_all(plan.augments, key_, size, runner, pass); !result.ok()) return result;
    if (!runner.result().ok()) return runner.result();
    pass += plan.augments.size();
    if (plan.next != nullptr) return from_floats(*plan.next, pass, canvas.image());
    const auto store = [&] {
      const PassTimer timer(pass);
      return store_image(plan, canvas.image());
    };
    const Result result = store();
    return result.ok() ? erase_view(plan, key_, pass + 1, slot_) : result;
  }

  Result from_floats(const ImageProgram& plan, std::size_t pass, const FloatPlanes& image) noexcept {
    Draw draw;
    if (const Result result = draw_geometry(plan, key_, image.width, image.height, draw); !result.ok()) return result;
    if (!plan.is_chain() && (draw.width != plan.store.width || draw.height != plan.store.height)) return kOtherSize;
    const Levels levels = levels_of(plan, draw);
    if (levels.what == Levels::What::window)
      window_row(image.data, image.plane() * image.channels, levels.shift, levels.scale, image.data);
    const std::size_t elements = std::size_t{image.width} * image.channels;
    const float* pixels = image.data;
    if (image.channels > 1) {
      float* const rows = take<float>(scratch_, elements * image.height);
      if (rows == nullptr) return kNoRoom;
      for (std::uint32_t y = 0; y < image.height; ++y) interleave_row(image, y, rows + y * elements);
      pixels = rows;
    }
    const Part<float> part{pixels, elements, 0, 0, image.width, image.height, image.channels};
    const Needs needs = needs_of(plan, draw);
    return run(plan, draw, pass, levels, false,
               [&](float*, const auto& rows) { return run_resizes(plan, draw, needs, 0, part, scratch_, rows); });
  }

  // ToFloat and Normalize of a row that is stored next.
  static const float* finished(const ImageProgram& plan, const float* row, std::size_t elements, bool is_divided,
                               float* line) noexcept {
    if (plan.divides && !is_divided) {
      for (std::size_t i = 0; i < elements; ++i) line[i] = row[i] / 65535.0F;
      row = line;
    }
    if (!plan.mean_row.empty()) {
      normalize_row(row, elements, plan.mean_row.data(), plan.std_row.data(), line);
      row = line;
    }
    return row;
  }

  Result store_image(const ImageProgram& plan, const FloatPlanes& image) noexcept {
    const StoreShape& shape = plan.store;
    if (image.width != shape.width || image.height != shape.height) return kOtherSize;
    const std::size_t elements = std::size_t{shape.width} * shape.channels;
    float* const line = take<float>(scratch_, elements);
    if (line == nullptr) return kNoRoom;
    for (std::uint32_t y = 0; y < shape.height; ++y) {
      const float* row = image.row(0, y);
      if (image.channels > 1) {
        interleave_row(image, y, line);
        row = line;
      }
      store_row(shape, finished(plan, row, elements, false, line), y, false, slot_);
    }
    return {};
  }

  const std::uint64_t key_;
  const double offset_;
  std::byte* const slot_;
  Scratch& scratch_;
};

}  // namespace

Result make_deep_view(const ImageProgram& plan, const Draw& draw, const DeepPart& source, double offset,
                      std::byte* slot, Scratch& scratch) noexcept {
  return DeepView(draw.key, offset, slot, scratch).from_words(plan, draw, source);
}

}  // namespace stoker::transform
