// Draws what chance decides for a view of an image, and makes the view.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "stoker/transform/deep.h"
#include "stoker/transform/image_program.h"
#include "stoker/transform/resize.h"
#include "stoker/transform/resize_fast.h"
#include "stoker/transform/take.h"

namespace stoker::transform {
namespace {

// As image_program.cc numbers the streams: the place in the variant times 256.
constexpr std::uint32_t kFlipStream = 3 * 256, kWindowStream = 6 * 256;
static_assert(std::is_same_v<std::variant_alternative_t<3, decltype(Op::what)>, HorizontalFlip>);
static_assert(std::is_same_v<std::variant_alternative_t<6, decltype(Op::what)>, Window>);

Random stream(std::uint64_t key, std::uint32_t number) noexcept {
  return Random(key, 0, 0, number);
}

// Python's round(): halves to even.
std::uint32_t rounded(double value) noexcept {
  return static_cast<std::uint32_t>(std::nearbyint(value));
}

std::uint32_t center_offset(std::uint32_t outer, std::uint32_t inner) noexcept {
  return rounded((outer - inner) / 2.0);
}

// torchvision's RandomResizedCrop.get_params.
Rect random_crop(const RandomResizedCrop& op, std::uint32_t width, std::uint32_t height, Random random) noexcept {
  const double area = static_cast<double>(width) * height;
  const double log_low = std::log(op.ratio_min), log_high = std::log(op.ratio_max);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * random.uniform(op.scale_min, op.scale_max);
    const double ratio = std::exp(random.uniform(log_low, log_high));
    const double w = std::nearbyint(std::sqrt(target * ratio)), h = std::nearbyint(std::sqrt(target / ratio));
    if (w > 0 && w <= width && h > 0 && h <= height) {
      Rect rect{0, 0, static_cast<std::uint32_t>(w), static_cast<std::uint32_t>(h)};
      rect.y = random.below(height - rect.height + 1);
      rect.x = random.below(width - rect.width + 1);
      return rect;
    }
  }
  const double ratio = static_cast<double>(width) / height;
  Rect rect{0, 0, width, height};
  if (ratio < op.ratio_min) {
    rect.height = std::clamp(rounded(width / op.ratio_min), 1u, height);
  } else if (ratio > op.ratio_max) {
    rect.width = std::clamp(rounded(height * op.ratio_max), 1u, width);
  }
  rect.x = (width - rect.width) / 2;
  rect.y = (height - rect.height) / 2;
  return rect;
}

// One axis of a CenterCrop, as torchvision's. The image so far is `size` long; the source's pixels [at, at + length)
// show in it from `left` on, and what lies around them is padding.
struct CropAxis {
  std::uint32_t at, length, left, size;
  bool is_blank = false;  // nothing of the source is left: the crop shows padding alone

  void crop(std::uint32_t wanted, bool from_right) noexcept {
    if (wanted >= size) {
      const std::uint32_t more = wanted - size, before = more / 2;
      left += from_right ? more - before : before;
    } else {
      std::uint32_t offset = center_offset(size, wanted);
      if (from_right) offset = size - offset - wanted;
      const std::uint32_t first = std::max(left, offset), end = std::min(left + length, offset + wanted);
      is_blank = is_blank || end <= first;
      at += first - left;
      length = end > first ? end - first : 1;
      left = first - offset;
    }
    size = wanted;
  }
};

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

// The same for a 16-bit source. `line` has room for a row of the view.
template <typename Store>
Result run_deep(const ImageProgram& plan, const Draw& draw, const Needs& needs, DeepPart source, const Levels& levels,
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

Needs needs_of(const ImageProgram& plan, const Draw& draw) noexcept {
  Needs needs;
  Rect keep = draw.steps[plan.resizes];
  for (std::uint32_t i = plan.resizes; i-- > 0;) {
    const Rect& from = draw.steps[i];
    Resizing& r = needs.resizings[i];
    r = {from.width,
         from.height,
         draw.sizes[i][0],
         draw.sizes[i][1],
         plan.filters[i],
         draw.flip && plan.flip_at <= plan.step_of[i],
         keep};
    keep = needed(r);
    keep.x += from.x;
    keep.y += from.y;
  }
  needs.source = keep;
  return needs;
}

std::pair<std::uint32_t, std::uint32_t> shorter_side(std::uint32_t width, std::uint32_t height,
                                                     std::uint32_t side) noexcept {
  const bool upright = width <= height;
  const std::uint64_t low = upright ? width : height, high = upright ? height : width;
  const auto longer = static_cast<std::uint32_t>(std::min<std::uint64_t>(side * high / low, 0xFFFFFFFF));
  return upright ? std::pair{side, longer} : std::pair{longer, side};
}

Result ImagePlan::draw(std::uint32_t view, std::uint32_t width, std::uint32_t height, Random& random,
                       Draw& draw) const noexcept {
  assert(view < view_count_ && "draw: no such view");
  const ImageProgram& plan = program_of(view);
  draw = {};
  if (width == 0 || height == 0) return failed(Code::corrupt, "image has no pixels");
  const std::uint64_t low = random.next();
  const std::uint64_t key = low | std::uint64_t{random.next()} << 32;
  draw.flip = plan.has_flip && stream(key, kFlipStream).uniform() < plan.flip_p;
  if (plan.has_window) {
    Random numbers = stream(key, kWindowStream);
    const double level = numbers.uniform(plan.window.level_min, plan.window.level_max);
    const double range = numbers.uniform(plan.window.width_min, plan.window.width_max);
    draw.window_low = static_cast<float>(level - range / 2);
    draw.window_scale = static_cast<float>(1 / range);
  }

  // Everything is laid out as if the flip came last; what comes after a flip takes its place from the right.
  CropAxis x{0, width, 0, width}, y{0, height, 0, height};
  std::uint32_t resizes = 0;
  bool pads_before_window = false;
  for (std::uint32_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const bool is_mirrored = draw.flip && plan.flip_at <= i;
    std::uint32_t to_width = step.width, to_height = step.height;
    if (step.resizes() && draw.is_padded) {
      return failed(Code::mismatch, "image is smaller than CenterCrop, and is resized after it: put Resize before it");
    }
    switch (step.what) {
      case Step::What::random_crop: {
        const Rect crop = random_crop(step.random, x.length, y.length, stream(key, step.stream));
        x.at += is_mirrored ? x.length - crop.x - crop.width : crop.x;
        y.at += crop.y;
        x.length = crop.width, y.length = crop.height;
        break;
      }
      case Step::What::exact_size:
        break;
      case Step::What::shorter_side:
        std::tie(to_width, to_height) = shorter_side(x.length, y.length, step.height);
        if (std::max(to_width, to_height) > 1u << 20)
          return failed(Code::too_large, "image is too long and thin to resize its shorter side");
        break;
      case Step::What::center_crop:
        if (step.width > x.size || step.height > y.size) {
          if (!plan.mean.empty() && plan.mean_at <= i)
            return failed(Code::mismatch, "image is smaller than CenterCrop: put CenterCrop before Normalize");
          draw.is_padded = true;
          const bool is_after = plan.has_window && plan.window_at <= i;
          (is_after ? draw.pads_after_window : pads_before_window) = true;
        }
        x.crop(step.width, is_mirrored);
        y.crop(step.height, false);
        break;
    }
    if (step.resizes()) {
      draw.steps[resizes] = {x.at, y.at, x.length, y.length};
      draw.sizes[resizes][0] = to_width;
      draw.sizes[resizes][1] = to_height;
      ++resizes;
      x = {0, to_width, 0, to_width};
      y = {0, to_height, 0, to_height};
    }
  }
  if (draw.pads_after_window && pads_before_window) {
    return failed(Code::mismatch, "image is smaller than the CenterCrops before and after Window: leave one out");
  }
  if (x.size != plan.store.width || y.size != plan.store.height) {
    return failed(Code::mismatch,
                  "image has another size than the first one: add Resize((height, width)) or RandomResizedCrop(size)");
  }
  draw.inside = {x.left, y.left, x.length, x.is_blank || y.is_blank ? 0 : y.length};
  draw.steps[resizes] = {x.at, y.at, x.length, y.length};
  draw.crop = needs_of(plan, draw).source;
  return {};
}

Result ImagePlan::apply(std::uint32_t view, const Draw& draw, const Pixels& source, const Rect& region,
                        std::span<const double> values, std::byte* slot, Scratch& scratch) const noexcept {
  assert(view < view_count_ && "apply: no such view");
  assert(contains(region, draw.crop) && "apply: the source lacks pixels that draw asked for");
  assert(source.width == region.width && source.height == region.height && "apply: the source is not the region");
  const ImageProgram& plan = program_of(view);
  const StoreShape& shape = plan.store;
  if (source.channels != shape.channels) {
    return failed(Code::mismatch, "image has another channel count than the first one", Remedy::one_color);
  }
  if (source.dtype != (plan.deep ? DType::u16 : DType::u8)) {
    return failed(Code::mismatch, "image has another bit depth than the plan was made for");
  }
  const Needs needs = needs_of(plan, draw);

  if (!plan.deep) {
    const Part<std::uint8_t> part{reinterpret_cast<const std::uint8_t*>(source.data),
                                  source.stride_bytes,
                                  region.x,
                                  region.y,
                                  region.width,
                                  region.height,
                                  source.channels};
    const void* const table = plan.table.empty() ? nullptr : plan.table.data();
    const auto store = [&](std::uint32_t y, const std::uint8_t* row) {
      store_row(shape, row, y, draw.flip, table, slot);
    };
    return run_padded(draw, shape, std::uint8_t{0}, scratch, store,
                      [&](const auto& rows) { return run_resizes(plan, draw, needs, 0, part, scratch, rows); });
  }

  const std::size_t elements = std::size_t{shape.width} * shape.channels;
  float* const line = take<float>(scratch, elements);
  if (line == nullptr) return kNoRoom;
  const DeepPart part{source.data, source.stride_bytes, region.x, region.y, source.channels};
  Levels levels{plan.values == Values::raw ? Levels::What::as_stored : Levels::What::share, 0, 1};
  if (plan.has_window) {
    assert((plan.window.offset || plan.offset_value < values.size()) && "apply: a column's value is missing");
    const double offset = plan.window.offset ? *plan.window.offset : values[plan.offset_value];
    levels = {plan.window_last ? Levels::What::as_stored : Levels::What::window,
              static_cast<float>(draw.window_low + offset), draw.window_scale};
  }
  const auto store = [&](std::uint32_t y, const float* row) {
    if (plan.window_last) {
      window_row(row, elements, levels.shift, levels.scale, line);
      row = line;
    }
    if (!plan.mean_row.empty()) {
      normalize_row(row, elements, plan.mean_row.data(), plan.std_row.data(), line);
      row = line;
    }
    store_row(shape, row, y, draw.flip, slot);
  };
  // Padding is 0 where CenterCrop stands: after the window, or before it.
  float blank = 0;
  if (plan.has_window && plan.window_last && draw.pads_after_window) blank = levels.shift;
  if (plan.has_window && !plan.window_last && !draw.pads_after_window)
    blank = std::clamp((0 - levels.shift) * levels.scale, 0.0F, 1.0F);
  return run_padded(draw, shape, blank, scratch, store,
                    [&](const auto& rows) { return run_deep(plan, draw, needs, part, levels, line, scratch, rows); });
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
  const StoreShape& shape = plan.store;
  if (source.channels != shape.channels || source.dtype != DType::u8) {
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
  const void* const table = plan.table.empty() ? nullptr : plan.table.data();
  const auto store = [&](std::uint32_t row, const std::uint8_t* pixels) {
    store_row(shape, pixels, row, draw.flip, table, slot);
  };
  return run_padded(draw, shape, std::uint8_t{0}, scratch, store, [&](const auto& rows) {
    if (suits_fast_resize(first, source.channels))
      return run_first(FastResizer{}, plan, draw, needs, first, part, scratch, rows);
    return run_first(Resizer<std::uint8_t>{}, plan, draw, needs, first, part, scratch, rows);
  });
}

}  // namespace stoker::transform
