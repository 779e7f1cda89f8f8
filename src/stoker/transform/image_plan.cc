// Makes a view of an image.
#include <algorithm>
#include <cassert>
#include <cmath>

#include "stoker/transform/image_chain.h"
#include "stoker/transform/image_deep.h"
#include "stoker/transform/image_program.h"
#include "stoker/transform/image_rows.h"
#include "stoker/transform/resize.h"
#include "stoker/transform/resize_fast.h"

namespace stoker::transform {
namespace {

// The first resize with approximations, if it is the only one handed to `store`, else kept for the next.
template <typename FirstResizer, typename Store>
Result run_first(FirstResizer&& resizer, const ImageProgram& plan, const Draw& draw, const Needs& needs,
                 const Resizing& first, const Part<std::uint8_t>& source, Scratch& scratch, Store store) noexcept {
  const Result prepared = resizer.prepare(source, first, scratch);
  if (!prepared.ok()) return prepared;
  if (plan.resizes == 1) {
    for (std::uint32_t y = 0; y < first.keep.height; ++y) store(y, resizer.row(y));
    return {};
  }
  Part<std::uint8_t> part;
  if (!keep_rows(resizer, first.keep, source.channels, scratch, part)) return kNoRoom;
  return run_resizes(plan, draw, needs, 1, part, scratch, store);
}

// The pixels of an axis that show [begin, end), if the first shows what lies from `origin` on; and where in them.
struct Shown {
  std::int64_t first, end;
  double begin, length;
};
Shown shown(std::uint32_t begin, std::uint32_t size, std::int64_t origin, std::uint32_t scale) noexcept {
  const auto floor_div = [scale](std::int64_t value) {
    return value >= 0 ? value / scale : -((-value + scale - 1) / std::int64_t{scale});
  };
  const std::int64_t from = begin - origin, to = from + size;
  const std::int64_t first = floor_div(from), end = -floor_div(-to);
  return {first, end, static_cast<double>(from) / scale - static_cast<double>(first),
          static_cast<double>(size) / scale};
}

[[maybe_unused]] bool contains(const Rect& outer, const Rect& inner) noexcept {
  return inner.x >= outer.x && inner.y >= outer.y && inner.x - outer.x + inner.width <= outer.width &&
         inner.y - outer.y + inner.height <= outer.height;
}

}  // namespace

Result ImagePlan::apply(std::uint32_t view, const Draw& draw, const Pixels& source, const Rect& region,
                        std::span<const double> values, std::byte* slot, Scratch& scratch) const noexcept {
  assert(view < view_count_ && "apply: no such view");
  assert(contains(region, draw.crop) && "apply: the source lacks pixels that draw asked for");
  assert(source.width == region.width && source.height == region.height && "apply: the source is not the region");
  const ImageProgram& plan = program_of(view);
  if (source.channels != plan.channels) {
    return failed(Code::mismatch, "image has another channel count than the first one", Remedy::one_color);
  }
  if (source.dtype != (plan.deep ? DType::u16 : DType::u8)) {
    return failed(Code::mismatch, "image has another bit depth than the plan was made for");
  }
  if (!plan.deep) {
    const Needs needs = needs_of(plan, draw);
    const Part<std::uint8_t> part{reinterpret_cast<const std::uint8_t*>(source.data),
                                  source.stride_bytes,
                                  region.x,
                                  region.y,
                                  region.width,
                                  region.height,
                                  source.channels};
    return make_view(plan, draw, plan.first_pass, slot, scratch, [&](const StoreShape& into, const auto& store) {
      return run_padded(draw, into, std::uint8_t{0}, scratch, store,
                        [&](const auto& rows) { return run_resizes(plan, draw, needs, 0, part, scratch, rows); });
    });
  }

  const DeepPart part{source.data, source.stride_bytes, region.x, region.y, source.channels};
  double offset = 0;
  if (const Window* const window = plan.window_of_chain(); window != nullptr) {
    assert((window->offset || plan.offset_value < values.size()) && "apply: a column's value is missing");
    offset = window->offset ? *window->offset : values[plan.offset_value];
  }
  return make_deep_view(plan, draw, part, offset, slot, scratch);
}

std::uint32_t ImagePlan::most_scale(std::uint32_t view, const Draw& draw) const noexcept {
  const ImageProgram& plan = program_of(view);
  if (plan.deep || plan.resizes == 0 || plan.filters[0] == Filter::nearest) return 1;
  std::uint32_t scale = 8;
  while (scale > 1 &&
         (draw.steps[0].width / scale < draw.sizes[0][0] || draw.steps[0].height / scale < draw.sizes[0][1])) {
    scale /= 2;
  }
  return scale;
}

Rect ImagePlan::crop_at(std::uint32_t view, const Draw& draw, std::uint32_t scale) const noexcept {
  const ImageProgram& plan = program_of(view);
  if (scale == 1 || plan.resizes == 0) return draw.crop;
  const auto wider = [scale](std::uint32_t& at, std::uint32_t& size, std::uint32_t least, std::uint32_t extent) {
    const std::uint32_t first = std::max(least, at - std::min(at, scale));
    size = std::min(least + extent, at + size + scale) - first;
    at = first;
  };
  Rect crop = draw.crop;
  wider(crop.x, crop.width, draw.steps[0].x, draw.steps[0].width);
  wider(crop.y, crop.height, draw.steps[0].y, draw.steps[0].height);
  return crop;
}

Result ImagePlan::apply_fast(std::uint32_t view, const Draw& draw, const Pixels& source, const Placement& placement,
                             std::byte* slot, Scratch& scratch) const noexcept {
  assert(view < view_count_ && "apply_fast: no such view");
  const ImageProgram& plan = program_of(view);
  const std::uint32_t scale = placement.scale;
  if (plan.deep || plan.resizes == 0 || plan.filters[0] == Filter::nearest) {
    assert(scale == 1 && placement.x >= 0 && placement.y >= 0 && "apply_fast: a view that cannot be scaled");
    const Rect region{static_cast<std::uint32_t>(placement.x), static_cast<std::uint32_t>(placement.y), source.width,
                      source.height};
    return apply(view, draw, source, region, {}, slot, scratch);
  }
  if (source.channels != plan.channels || source.dtype != DType::u8) {
    return failed(Code::mismatch, "image has another channel count than the first one", Remedy::one_color);
  }
  const Needs needs = needs_of(plan, draw);
  const Rect& crop = draw.steps[0];
  const Shown x = shown(crop.x, crop.width, placement.x, scale), y = shown(crop.y, crop.height, placement.y, scale);
  Resizing first = needs.resizings[0];
  first.mirrored = false;
  first.in_width = static_cast<std::uint32_t>(x.end - x.first);
  first.in_height = static_cast<std::uint32_t>(y.end - y.first);
  if (scale != 1) first.box = {x.begin, y.begin, x.length, y.length};
  const Part<std::uint8_t> part{reinterpret_cast<const std::uint8_t*>(source.data),
                                source.stride_bytes,
                                -x.first,
                                -y.first,
                                source.width,
                                source.height,
                                source.channels};
  if (const Rect need = needed(first); need.x < part.x || need.y < part.y ||
                                       need.x + need.width > part.x + part.width ||
                                       need.y + need.height > part.y + part.height) {
    assert(false && "apply_fast: the source lacks pixels that crop_at asked for");
    return failed(Code::mismatch, "the decoded part of the image is too small");
  }
  return make_view(plan, draw, plan.first_pass, slot, scratch, [&](const StoreShape& into, const auto& store) {
    return run_padded(draw, into, std::uint8_t{0}, scratch, store, [&](const auto& rows) {
      if (suits_fast_resize(first, source.channels))
        return run_first(FastResizer{}, plan, draw, needs, first, part, scratch, rows);
      return run_first(Resizer<std::uint8_t>{}, plan, draw, needs, first, part, scratch, rows);
    });
  });
}

}  // namespace stoker::transform
