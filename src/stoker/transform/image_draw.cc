// Draws what chance decides for a view of an image, before anything is decoded.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <tuple>
#include <type_traits>

#include "stoker/transform/image_program.h"
#include "stoker/transform/resize.h"

namespace stoker::transform {
namespace {

// As image_compiler.cc numbers the streams: the place in the variant times 256.
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
      size = wanted;
    } else {
      keep(center_offset(size, wanted), wanted, from_right);
    }
  }

  // `wanted` pixels from `offset` on, which counts from the right where `from_right` is set.
  void keep(std::uint32_t offset, std::uint32_t wanted, bool from_right) noexcept {
    if (from_right) offset = size - offset - wanted;
    const std::uint32_t first = std::max(left, offset), end = std::min(left + length, offset + wanted);
    is_blank = is_blank || end <= first;
    at += first - left;
    length = end > first ? end - first : 1;
    left = first - offset;
    size = wanted;
  }
};

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
  const std::uint64_t low = random.next();
  const std::uint64_t key = low | std::uint64_t{random.next()} << 32;
  const Result result = draw_geometry(plan, key, width, height, draw);
  if (!result.ok() || plan.is_chain()) return result;
  return draw.width == plan.store.width && draw.height == plan.store.height ? Result{} : kOtherSize;
}

Result draw_geometry(const ImageProgram& plan, std::uint64_t key, std::uint32_t width, std::uint32_t height,
                     Draw& draw) noexcept {
  draw = {};
  draw.key = key;
  if (width == 0 || height == 0) return failed(Code::corrupt, "image has no pixels");
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
      case Step::What::corner: {
        if (step.width > x.size || step.height > y.size)
          return failed(Code::mismatch, "image is smaller than FiveCrop: put Resize before it");
        const std::uint32_t more_x = x.size - step.width, more_y = y.size - step.height;
        const bool is_middle = step.corner == Corner::middle;
        const bool is_right = step.corner == Corner::top_right || step.corner == Corner::bottom_right;
        const bool is_low = step.corner == Corner::bottom_left || step.corner == Corner::bottom_right;
        x.keep(is_middle ? rounded(more_x / 2.0) : is_right ? more_x : 0, step.width, is_mirrored);
        y.keep(is_middle ? rounded(more_y / 2.0) : is_low ? more_y : 0, step.height, false);
        break;
      }
      case Step::What::random_window: {
        if (step.width > x.size || step.height > y.size) {
          return failed(Code::mismatch, "image is smaller than RandomCrop: set pad_if_needed, or put Resize before it");
        }
        Random numbers = stream(key, step.stream);
        const bool is_whole = step.width == x.size && step.height == y.size;
        const std::uint32_t top = is_whole ? 0 : numbers.below(y.size - step.height + 1);
        const std::uint32_t left = is_whole ? 0 : numbers.below(x.size - step.width + 1);
        x.keep(left, step.width, is_mirrored);
        y.keep(top, step.height, false);
        break;
      }
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
  draw.width = x.size, draw.height = y.size;
  draw.inside = {x.left, y.left, x.length, x.is_blank || y.is_blank ? 0 : y.length};
  draw.steps[resizes] = {x.at, y.at, x.length, y.length};
  draw.crop = needs_of(plan, draw).source;
  return {};
}

}  // namespace stoker::transform
