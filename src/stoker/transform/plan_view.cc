// Draws what chance decides for a view of a picture, and makes the view.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "stoker/transform/compiled.h"
#include "stoker/transform/resize.h"
#include "stoker/transform/take.h"

namespace stoker::transform {
namespace {

// As plan_image.cc numbers the streams: the place in the variant times 256.
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

// The rectangles that each resize must give, from the last one back to the source.
struct Needs {
  Resizing resizings[kMostResizes];
  Rect source;
};

Needs needs_of(const ImagePlan& plan, const Draw& draw) noexcept {
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

// The u16 source as float32: windowed, scaled to [0, 1], or as it is when the window comes after a resize.
void load_deep(const ImagePlan& plan, const Pixels& source, const Rect& region, const Rect& need, float shift,
               float scale, float* into) noexcept {
  const std::size_t elements = std::size_t{need.width} * source.channels;
  for (std::uint32_t y = 0; y < need.height; ++y) {
    const std::byte* const row = source.data + std::size_t{need.y - region.y + y} * source.stride_bytes +
                                 std::size_t{need.x - region.x} * source.channels * sizeof(std::uint16_t);
    float* const out = into + y * elements;
    for (std::size_t i = 0; i < elements; ++i) {
      std::uint16_t value = 0;
      std::memcpy(&value, row + i * sizeof(value), sizeof(value));
      out[i] = value;
    }
    if (plan.has_window && !plan.window_last) {
      for (std::size_t i = 0; i < elements; ++i) out[i] = std::clamp((out[i] - shift) * scale, 0.0F, 1.0F);
    } else if (!plan.has_window) {
      for (std::size_t i = 0; i < elements; ++i) out[i] = out[i] / 65535.0F;
    }
  }
}

// Runs the resizes and hands each row of the view to `store(y, row)`.
template <typename T, typename Store>
Result run_resizes(const ImagePlan& plan, const Draw& draw, const Needs& needs, Part<T> source, Scratch& scratch,
                   Store store) noexcept {
  if (plan.resizes == 0) {
    const Rect& keep = draw.steps[0];
    for (std::uint32_t y = 0; y < keep.height; ++y) store(y, source.at(keep.x, std::int64_t{keep.y} + y));
    return {};
  }
  for (std::uint32_t i = 0; i < plan.resizes; ++i) {
    const Resizing& r = needs.resizings[i];
    source.x -= draw.steps[i].x;  // coordinates of the crop that is resized
    source.y -= draw.steps[i].y;
    Resizer<T> resizer;
    const Result prepared = resizer.prepare(source, r, scratch);
    if (!prepared.ok()) return prepared;
    if (i + 1 == plan.resizes) {
      for (std::uint32_t y = 0; y < r.keep.height; ++y) store(y, resizer.row(y));
      break;
    }
    const std::size_t elements = std::size_t{r.keep.width} * source.channels;
    T* const next = take<T>(scratch, elements * r.keep.height);
    if (next == nullptr) return kNoRoom;
    for (std::uint32_t y = 0; y < r.keep.height; ++y)
      std::memcpy(next + y * elements, resizer.row(y), elements * sizeof(T));
    source = {next, elements, r.keep.x, r.keep.y, r.keep.width, r.keep.height, source.channels};
  }
  return {};
}

[[maybe_unused]] bool contains(const Rect& outer, const Rect& inner) noexcept {
  return inner.x >= outer.x && inner.y >= outer.y && inner.x - outer.x + inner.width <= outer.width &&
         inner.y - outer.y + inner.height <= outer.height;
}

}  // namespace

std::pair<std::uint32_t, std::uint32_t> shorter_side(std::uint32_t width, std::uint32_t height,
                                                     std::uint32_t side) noexcept {
  const bool upright = width <= height;
  const std::uint64_t low = upright ? width : height, high = upright ? height : width;
  const auto longer = static_cast<std::uint32_t>(std::min<std::uint64_t>(side * high / low, 0xFFFFFFFF));
  return upright ? std::pair{side, longer} : std::pair{longer, side};
}

Result Plan::draw(std::uint32_t view, std::uint32_t width, std::uint32_t height, Random& random,
                  Draw& draw) const noexcept {
  assert(view < view_count_ && "draw: no such view");
  const ImagePlan& plan = compiled_->images[compiled_->image_of_view[view]];
  draw = {};
  if (width == 0 || height == 0) return failed(Code::corrupt, "picture has no pixels");
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
  Rect kept{0, 0, width, height};
  std::uint32_t resizes = 0;
  for (std::uint32_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const auto narrow = [&](Rect inner) {
      if (draw.flip && plan.flip_at <= i) inner.x = kept.width - inner.x - inner.width;
      kept = {kept.x + inner.x, kept.y + inner.y, inner.width, inner.height};
    };
    std::uint32_t to_width = step.width, to_height = step.height;
    switch (step.what) {
      case Step::What::random_crop:
        narrow(random_crop(step.random, kept.width, kept.height, stream(key, step.stream)));
        break;
      case Step::What::exact_size:
        break;
      case Step::What::shorter_side:
        std::tie(to_width, to_height) = shorter_side(kept.width, kept.height, step.height);
        if (std::max(to_width, to_height) > 1u << 20)
          return failed(Code::too_large, "picture is too long and thin to resize its shorter side");
        break;
      case Step::What::center_crop:
        if (step.width > kept.width || step.height > kept.height) {
          return failed(Code::mismatch, "picture is smaller than CenterCrop: put Resize before it");
        }
        narrow(
            {center_offset(kept.width, step.width), center_offset(kept.height, step.height), step.width, step.height});
        break;
    }
    if (step.resizes()) {
      draw.steps[resizes] = kept;
      draw.sizes[resizes][0] = to_width;
      draw.sizes[resizes][1] = to_height;
      ++resizes;
      kept = {0, 0, to_width, to_height};
    }
  }
  if (kept.width != plan.store.width || kept.height != plan.store.height) {
    return failed(
        Code::mismatch,
        "picture has another size than the first one: add Resize((height, width)) or RandomResizedCrop(size)");
  }
  draw.steps[resizes] = kept;
  draw.crop = needs_of(plan, draw).source;
  return {};
}

Result Plan::apply(std::uint32_t view, const Draw& draw, const Pixels& source, const Rect& region, double offset,
                   std::byte* slot, Scratch& scratch) const noexcept {
  assert(view < view_count_ && "apply: no such view");
  assert(contains(region, draw.crop) && "apply: the source lacks pixels that draw asked for");
  assert(source.width == region.width && source.height == region.height && "apply: the source is not the region");
  const ImagePlan& plan = compiled_->images[compiled_->image_of_view[view]];
  const StoreShape& shape = plan.store;
  if (source.channels != shape.channels) {
    return failed(Code::mismatch,
                  "picture has another channel count than the first one: choose color=\"rgb\" or \"gray\"");
  }
  if (source.dtype != (plan.deep ? DType::u16 : DType::u8)) {
    return failed(Code::mismatch, "picture has another bit depth than the plan was made for");
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
    return run_resizes(plan, draw, needs, part, scratch, [&](std::uint32_t y, const std::uint8_t* row) {
      store_row(shape, row, y, draw.flip, table, slot);
    });
  }

  const Rect& need = needs.source;
  const std::size_t elements = std::size_t{need.width} * source.channels;
  float* const loaded = take<float>(scratch, elements * need.height);
  const std::size_t row_elements = std::size_t{shape.width} * shape.channels;
  float* const line = take<float>(scratch, row_elements);
  if (loaded == nullptr || line == nullptr) return kNoRoom;
  const float shift = static_cast<float>(draw.window_low + plan.window.offset.value_or(offset));
  const float scale = draw.window_scale;
  load_deep(plan, source, region, need, shift, scale, loaded);
  const Part<float> part{loaded, elements, need.x, need.y, need.width, need.height, source.channels};
  return run_resizes(plan, draw, needs, part, scratch, [&](std::uint32_t y, const float* row) {
    if (plan.window_last) {
      for (std::size_t i = 0; i < row_elements; ++i) line[i] = std::clamp((row[i] - shift) * scale, 0.0F, 1.0F);
      row = line;
    }
    if (!plan.mean.empty()) {
      for (std::size_t x = 0, i = 0; x < shape.width; ++x) {
        for (std::uint32_t c = 0; c < shape.channels; ++c, ++i) line[i] = (row[i] - plan.mean[c]) / plan.std[c];
      }
      row = line;
    }
    store_row(shape, row, y, draw.flip, slot);
  });
}

}  // namespace stoker::transform
