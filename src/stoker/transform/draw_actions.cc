#include "stoker/transform/draw_actions.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "stoker/base/random.h"
#include "stoker/transform/policies.h"

namespace stoker::transform {
namespace {

constexpr std::size_t kMostHeld = 64;  // operations of a RandomOrder; ops_check.cc refuses more

// The first `count` numbers in a random order.
void shuffle(Random& random, std::uint32_t count, std::uint8_t* order) noexcept {
  std::iota(order, order + count, std::uint8_t{0});
  for (std::uint32_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
}

// A float32 number, also where nothing is left to chance: torchvision draws with torch's default type.
double drawn(Random& random, const Span& span) noexcept {
  return static_cast<float>(span.low == span.high ? span.low : random.uniform(span.low, span.high));
}

struct Sides {
  double left = 0, top = 0, right = 0, bottom = 0;
};
Sides sides_of(const Numbers& padding) noexcept {
  if (padding.empty()) return {};
  if (padding.size() == 1) return {padding[0], padding[0], padding[0], padding[0]};
  if (padding.size() == 2) return {padding[0], padding[1], padding[0], padding[1]};
  return {padding[0], padding[1], padding[2], padding[3]};
}

// Draws one operation. `size` follows the actions.
class Drawing final : public ActionSink {
 public:
  Drawing(const Augment& augment, std::uint64_t key, ImageSize& size, ActionSink& sink) noexcept
      : augment_(augment), key_(key), random_(key, 0, 0, augment.stream), size_(size), sink_(sink) {}

  Result run() noexcept {
    std::visit([&](const auto& op) { draw(op); }, augment_.op.what);
    return result_;
  }

  void act(const Action& action) noexcept override {
    sink_.act(action);
    size_ = size_after(action, size_);
  }

 private:
  bool happens(double p) noexcept { return random_.uniform() < p; }

  void act(Act what, double figure = 0) noexcept {
    Action action;
    action.what = what;
    action.figures[0] = figure;
    act(action);
  }

  void draw(const auto&) noexcept {}  // not an augmentation: the compiler has refused it
  void draw(const HorizontalFlip& op) noexcept {
    if (happens(op.p)) act(Act::flip_x);
  }
  void draw(const VerticalFlip& op) noexcept {
    if (happens(op.p)) act(Act::flip_y);
  }
  void draw(const ColorJitter& op) noexcept {
    std::uint8_t order[4];
    shuffle(random_, 4, order);
    const Span* const spans[4] = {&op.brightness, &op.contrast, &op.saturation, &op.hue};
    double factors[4];
    for (std::size_t i = 0; i < 4; ++i) factors[i] = drawn(random_, *spans[i]);
    constexpr Act kWhat[4] = {Act::brightness, Act::contrast, Act::saturation, Act::hue};
    for (const std::uint8_t i : order) {
      const double nothing = i == 3 ? 0 : 1;
      if (*spans[i] != Span{nothing, nothing}) act(kWhat[i], factors[i]);
    }
  }
  void draw(const Grayscale& op) noexcept { act(Act::gray, op.channels); }
  void draw(const RandomGrayscale& op) noexcept {
    if (happens(op.p)) act(Act::gray, size_.channels);
  }
  void draw(const RandomInvert& op) noexcept {
    if (happens(op.p)) act(Act::invert);
  }
  void draw(const RandomPosterize& op) noexcept {
    if (happens(op.p)) act(Act::posterize, op.bits);
  }
  void draw(const RandomSolarize& op) noexcept {
    if (happens(op.p)) act(Act::solarize, op.threshold);
  }
  void draw(const RandomAdjustSharpness& op) noexcept {
    if (happens(op.p)) act(Act::sharpness, op.factor);
  }
  void draw(const RandomAutocontrast& op) noexcept {
    if (happens(op.p)) act(Act::autocontrast);
  }
  void draw(const RandomEqualize& op) noexcept {
    if (happens(op.p)) act(Act::equalize);
  }
  void draw(const GaussianBlur& op) noexcept {
    Action action;
    action.what = Act::blur;
    action.figures = {op.kernel.front(), op.kernel.back(), drawn(random_, op.sigma)};
    act(action);
  }

  void draw(const RandAugment& op) noexcept { draw_policy(op, random_, size_, *this); }
  void draw(const TrivialAugmentWide& op) noexcept { draw_policy(op, random_, size_, *this); }
  void draw(const TimmRandAugment& op) noexcept { draw_policy(op, random_, size_, *this); }
  void draw(const AugMix& op) noexcept { draw_policy(op, random_, size_, *this); }
  void draw(const AutoAugment& op) noexcept { draw_policy(op, random_, size_, *this); }

  void draw(const RandShiftIntensity& op) noexcept {
    if (happens(op.prob)) act(Act::shift_values, drawn(random_, op.offsets));
  }
  void draw(const RandScaleIntensity& op) noexcept {
    if (happens(op.prob)) act(Act::scale_values, static_cast<float>(1 + drawn(random_, op.factors)));
  }
  void draw(const RandAdjustContrast& op) noexcept {
    if (happens(op.prob)) act(Act::gamma_values, drawn(random_, op.gamma));
  }
  void draw(const RandGaussianNoise& op) noexcept {
    if (!happens(op.prob)) return;
    Action action;
    action.what = Act::noise_values;
    action.figures = {op.mean, drawn(random_, {op.sample_std ? 0 : op.std, op.std})};
    const std::uint64_t low = random_.next();
    action.noise = low | std::uint64_t{random_.next()} << 32;
    act(action);
  }

  // torchvision's RandomErasing.get_params.
  void draw(const RandomErasing& op) noexcept {
    if (!happens(op.p)) return;
    const double area = static_cast<double>(size_.width) * size_.height;
    const double log_low = std::log(op.ratio.low), log_high = std::log(op.ratio.high);
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double erased = area * drawn(random_, op.scale), ratio = std::exp(random_.uniform(log_low, log_high));
      const double h = std::nearbyint(std::sqrt(erased * ratio)), w = std::nearbyint(std::sqrt(erased / ratio));
      if (!(h < size_.height && w < size_.width)) continue;
      Action action;
      action.what = Act::erase;
      const std::uint32_t top = random_.below(size_.height - static_cast<std::uint32_t>(h) + 1);
      const std::uint32_t left = random_.below(size_.width - static_cast<std::uint32_t>(w) + 1);
      action.figures = {static_cast<double>(left), static_cast<double>(top), w, h};
      for (std::size_t c = 0; c < 4 && !op.value.empty(); ++c)
        action.figures[4 + c] = op.value[op.value.size() == 1 ? 0 : std::min(c, op.value.size() - 1)];
      action.is_random = op.is_random;
      action.fill.fill(1);
      for (std::size_t c = 0; c < std::min<std::size_t>(4, op.std.size()) && op.is_random; ++c)
        action.figures[4 + c] = op.mean[c], action.fill[c] = static_cast<float>(op.std[c]);
      const std::uint64_t low = random_.next();
      action.noise = low | std::uint64_t{random_.next()} << 32;
      return act(action);
    }
  }

  // `sides` are added, then the rectangle is kept.
  void pad_crop(const Sides& sides, double x, double y, double width, double height, Padding padding,
                const Numbers& fill) noexcept {
    if (!result_.ok()) return;
    const double across = size_.width, down = size_.height;
    const bool is_too_wide = std::max(sides.left, sides.right) >= across || std::max(sides.top, sides.bottom) >= down;
    if (padding == Padding::reflect && is_too_wide) {
      result_ =
          failed(Code::mismatch, "image is too small for its padding: reflect adds less than a side; choose edge");
      return;
    }
    if (width > kLongestSide || height > kLongestSide) {
      result_ = failed(Code::too_large, "image is too large to add pixels around it");
      return;
    }
    Action action;
    action.what = Act::pad_crop;
    action.figures = {sides.left, sides.top, sides.right, sides.bottom, x, y, width, height};
    action.padding = padding;
    action.fill = fill_of(fill);
    act(action);
  }
  void pad(const Sides& sides, Padding padding, const Numbers& fill) noexcept {
    pad_crop(sides, 0, 0, size_.width + sides.left + sides.right, size_.height + sides.top + sides.bottom, padding,
             fill);
  }
  void draw(const Pad& op) noexcept { pad(sides_of(op.padding), op.mode, op.fill); }
  void draw(const RandomCrop& op) noexcept {
    const double height = op.size.front(), width = op.size.back();
    Sides sides = sides_of(op.padding);
    double across = size_.width + sides.left + sides.right, down = size_.height + sides.top + sides.bottom;
    if (op.pad_if_needed && (across < width || down < height)) {
      // Reflections of reflections are done one after another, as torchvision does them.
      if (!op.padding.empty() && op.mode != Padding::constant && op.mode != Padding::edge) {
        pad(sides, op.mode, op.fill);
        sides = {};
      }
      if (across < width) sides.left += width - across, sides.right += width - across;
      if (down < height) sides.top += height - down, sides.bottom += height - down;
      across = size_.width + sides.left + sides.right, down = size_.height + sides.top + sides.bottom;
    }
    if (across < width || down < height) {
      if (result_.ok())
        result_ =
            failed(Code::mismatch, "image is smaller than RandomCrop: set pad_if_needed, or put Resize before it");
      return;
    }
    double x = 0, y = 0;
    if (across != width || down != height) {
      y = random_.below(static_cast<std::uint32_t>(down - height) + 1);
      x = random_.below(static_cast<std::uint32_t>(across - width) + 1);
    }
    pad_crop(sides, x, y, width, height, op.mode, op.fill);
  }
  void draw(const RandomZoomOut& op) noexcept {
    if (!happens(op.p)) return;
    const double ratio = drawn(random_, op.side_range), w = size_.width, h = size_.height;
    const double across = std::trunc(w * ratio), down = std::trunc(h * ratio);
    Sides sides;
    sides.left = std::trunc((across - w) * random_.uniform());
    sides.top = std::trunc((down - h) * random_.uniform());
    sides.right = across - sides.left - w;
    sides.bottom = down - sides.top - h;
    pad(sides, Padding::constant, op.fill);
  }

  void warp(Act what, const std::array<double, 8>& figures, Filter filter, const Numbers& fill) noexcept {
    Action action;
    action.what = what;
    action.figures = figures;
    action.filter = filter;
    action.fill = fill_of(fill);
    const ImageSize after = size_after(action, size_);
    if (after.width > kLongestSide || after.height > kLongestSide) {
      result_ = failed(Code::too_large, "image is too large to turn it with expand");
      return;
    }
    act(action);
  }
  void draw(const RandomRotation& op) noexcept {
    const bool has_center = !op.center.empty();
    warp(Act::rotate,
         {drawn(random_, op.degrees), op.expand ? 1.0 : 0.0, has_center ? 1.0 : 0.0, has_center ? op.center[0] : 0,
          has_center ? op.center[1] : 0},
         op.filter, op.fill);
  }
  void draw(const RandomAffine& op) noexcept {
    const double angle = drawn(random_, op.degrees);
    double shift_x = 0, shift_y = 0;
    if (!op.translate.empty()) {
      const double most_x = op.translate[0] * size_.width, most_y = op.translate[1] * size_.height;
      shift_x = std::nearbyint(random_.uniform(-most_x, most_x));
      shift_y = std::nearbyint(random_.uniform(-most_y, most_y));
    }
    const double scale = drawn(random_, op.scale);
    const double shear_x = op.shear.empty() ? 0 : drawn(random_, {op.shear[0], op.shear[1]});
    const double shear_y = op.shear.size() < 4 ? 0 : drawn(random_, {op.shear[2], op.shear[3]});
    warp(Act::affine,
         {angle, shift_x, shift_y, scale, shear_x, shear_y, op.center.empty() ? size_.width * 0.5 : op.center[0],
          op.center.empty() ? size_.height * 0.5 : op.center[1]},
         op.filter, op.fill);
  }
  void draw(const RandomPerspective& op) noexcept {
    if (!happens(op.p)) return;
    const double w = size_.width, h = size_.height;
    const double inset_x = std::trunc(op.distortion_scale * (size_.width / 2));
    const double inset_y = std::trunc(op.distortion_scale * (size_.height / 2));
    const auto low = [&](double inset) {
      return static_cast<double>(random_.below(static_cast<std::uint32_t>(inset) + 1));
    };
    const auto high = [&](double side, double inset) { return side - inset - 1 + low(inset); };
    std::array<double, 8> corners{};
    corners[0] = low(inset_x), corners[1] = low(inset_y);
    corners[2] = high(w, inset_x), corners[3] = low(inset_y);
    corners[4] = high(w, inset_x), corners[5] = high(h, inset_y);
    corners[6] = low(inset_x), corners[7] = high(h, inset_y);
    warp(Act::perspective, corners, op.filter, op.fill);
  }

  void run_inner(const Augment& inner) noexcept {
    if (!result_.ok()) return;
    result_ = draw_actions(inner, key_, size_, sink_);
  }
  void draw(const RandomApply& op) noexcept {
    if (!happens(op.p)) return;
    for (const Augment& inner : augment_.inner) run_inner(inner);
  }
  void draw(const RandomChoice& op) noexcept {
    if (op.p.empty())
      return run_inner(augment_.inner[random_.below(static_cast<std::uint32_t>(augment_.inner.size()))]);
    double left = random_.uniform() * std::accumulate(op.p.begin(), op.p.end(), 0.0);
    std::size_t at = 0;
    while (at + 1 < op.p.size() && (left >= op.p[at] || op.p[at] == 0)) left -= op.p[at++];
    run_inner(augment_.inner[at]);
  }
  void draw(const RandomOrder&) noexcept {
    std::uint8_t order[kMostHeld];
    const auto count = static_cast<std::uint32_t>(augment_.inner.size());
    shuffle(random_, count, order);
    for (std::uint32_t i = 0; i < count; ++i) run_inner(augment_.inner[order[i]]);
  }

  static constexpr double kLongestSide = 65535;

  const Augment& augment_;
  const std::uint64_t key_;
  Random random_;
  ImageSize& size_;
  ActionSink& sink_;
  Result result_;
};

}  // namespace

Result draw_actions(const Augment& augment, std::uint64_t key, ImageSize& size, ActionSink& sink) noexcept {
  return Drawing(augment, key, size, sink).run();
}

bool keeps_size(const Op& op) noexcept {
  return std::visit(
      [](const auto& what) {
        using T = std::decay_t<decltype(what)>;
        if constexpr (requires { what.ops; }) {
          return std::all_of(what.ops.begin(), what.ops.end(), keeps_size);
        } else if constexpr (std::is_same_v<T, RandomRotation>) {
          return !what.expand;
        } else {
          return !std::is_same_v<T, Grayscale> && !std::is_same_v<T, Pad> && !std::is_same_v<T, RandomCrop> &&
                 !std::is_same_v<T, RandomZoomOut>;
        }
      },
      op.what);
}

bool is_augmentation(const Op& op) noexcept {
  return std::visit(
      [](const auto& what) {
        using T = std::decay_t<decltype(what)>;
        return Augmentation<T> && !AudioOperation<T> && !VolumeOperation<T>;
      },
      op.what);
}

}  // namespace stoker::transform
