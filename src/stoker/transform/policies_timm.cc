// timm's RandAugment: its table of operations, and its functions from a level to their arguments.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "stoker/transform/distributions.h"
#include "stoker/transform/policies.h"

namespace stoker::transform {
namespace {

// timm's _RAND_TRANSFORMS, in its order. _RAND_INCREASING_TRANSFORMS has the same operations.
enum class TimmPick : std::uint8_t {
  autocontrast,
  equalize,
  invert,
  rotate,
  posterize,
  solarize,
  solarize_add,
  color,
  contrast,
  brightness,
  sharpness,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  desaturate,     // of the sets 3a and 3aw alone
  gaussian_blur,  // the same
};
constexpr std::uint32_t kTimmPicks = 15;  // of the usual set
constexpr std::size_t kAllPicks = 17;

// _RAND_WEIGHTED_0 and _RAND_WEIGHTED_3A, in the order of TimmPick.
using TimmWeights = std::array<double, kAllPicks>;
constexpr TimmWeights kTimmWeights = {0.25, 0.05, 0.05, 3, 0.05, 0.05, 0.05, 0.25, 0.05, 0.05, 0.25, 2, 2, 1, 1, 0, 0};
constexpr TimmWeights kTimm3aWeights = {1, 1, 1, 3, 1, 6, 0, 1, 1, 1, 1, 2, 2, 0, 0, 6, 6};

// One by weight, which is then taken out.
TimmPick take_pick(TimmWeights& weights, Random& random) noexcept {
  double left = random.uniform() * std::accumulate(weights.begin(), weights.end(), 0.0);
  std::size_t pick = 0;
  for (std::size_t i = 0; i < weights.size() && left >= 0; ++i) {
    if (weights[i] == 0) continue;
    pick = i;
    left -= weights[i];
  }
  weights[pick] = 0;
  return static_cast<TimmPick>(pick);
}

Filter timm_filter(TimmFilter filter, Random& random) noexcept {
  switch (filter) {
    case TimmFilter::random:
      return random.below(2) == 0 ? Filter::bilinear : Filter::bicubic;
    case TimmFilter::bilinear:
      return Filter::bilinear;
    case TimmFilter::bicubic:
      return Filter::bicubic;
    case TimmFilter::nearest:
      return Filter::nearest;
  }
  return Filter::bicubic;
}

// timm's AugmentOp. `level` is the magnitude over 10.
void emit_timm(TimmPick pick, double level, const TimmRandAugment& op, Random& random, const ImageSize& size,
               ActionSink& sink) noexcept {
  Action action;
  action.fill = fill_of(op.fill);
  action.filter = timm_filter(op.filter, random);
  const bool is_negative = random.below(2) == 0;
  const auto either = [&](double value) { return is_negative ? -value : value; };
  const auto simple = [&](Act what, double figure) {
    action.what = what;
    action.figures[0] = figure;
    sink.act(action);
  };
  const auto matrix = [&](double b, double c, double d, double f) {
    action.what = Act::matrix;
    action.figures = {1, b, c, d, 1, f};
    sink.act(action);
  };
  const bool is_increasing = op.config.is_increasing || op.config.set != TimmSet::usual;
  const double factor = is_increasing ? std::max(0.1, 1.0 + either(level * 0.9)) : level * 1.8 + 0.1;
  switch (pick) {
    case TimmPick::autocontrast:
      return simple(Act::autocontrast, 0);
    case TimmPick::equalize:
      return simple(Act::equalize, 0);
    case TimmPick::invert:
      return simple(Act::invert, 0);
    case TimmPick::rotate:
      return simple(Act::rotate, either(level * 30));
    case TimmPick::posterize: {
      const double bits = std::trunc(level * 4);
      return simple(Act::posterize, std::clamp(is_increasing ? 4 - bits : bits, 0.0, 8.0));
    }
    case TimmPick::solarize: {
      const double threshold = std::min(256.0, std::trunc(level * 256));
      return simple(Act::solarize, is_increasing ? 256 - threshold : threshold);
    }
    case TimmPick::solarize_add:
      return simple(Act::solarize_add, std::min(128.0, std::trunc(level * 110)));
    case TimmPick::color:
      return simple(Act::saturation, factor);
    case TimmPick::contrast:
      return simple(Act::contrast, factor);
    case TimmPick::brightness:
      return simple(Act::brightness, factor);
    case TimmPick::sharpness:
      return simple(Act::sharpness, factor);
    case TimmPick::desaturate:
      return simple(Act::saturation, 1 - std::clamp(0.5 + 0.5 * level, 0.5, 1.0));
    case TimmPick::gaussian_blur:
      return simple(Act::box_blur, std::clamp(0.1 + (2.0 - 0.1) * level, 0.1, 2.0));
    case TimmPick::shear_x:
      return matrix(either(level * 0.3), 0, 0, 0);
    case TimmPick::shear_y:
      return matrix(0, 0, either(level * 0.3), 0);
    case TimmPick::translate_x:
      return matrix(0, either(level * 0.45) * size.width, 0, 0);
    case TimmPick::translate_y:
      return matrix(0, 0, 0, either(level * 0.45) * size.height);
  }
}

}  // namespace

void draw_policy(const TimmRandAugment& op, Random& random, const ImageSize& size, ActionSink& sink) noexcept {
  const TimmConfig& config = op.config;
  TimmWeights weights = config.set == TimmSet::weights ? kTimmWeights : kTimm3aWeights;
  const auto pick_one = [&] {
    constexpr std::array<TimmPick, 3> kThree = {TimmPick::solarize, TimmPick::desaturate, TimmPick::gaussian_blur};
    if (config.set == TimmSet::usual) return static_cast<TimmPick>(random.below(kTimmPicks));
    return config.set == TimmSet::three ? kThree[random.below(3)] : take_pick(weights, random);
  };
  for (std::uint32_t i = 0; i < config.num_ops; ++i) {
    const TimmPick pick = pick_one();
    const bool is_done = random.uniform() < config.p;
    double magnitude = config.magnitude;
    if (config.magnitude_std >= kTimmUniform) {
      magnitude = random.uniform(0, magnitude);
    } else if (config.magnitude_std > 0) {
      magnitude += config.magnitude_std * normal_of(random);
    }
    if (is_done)
      emit_timm(pick, std::clamp(magnitude, 0.0, static_cast<double>(config.most)) / 10, op, random, size, sink);
  }
}

}  // namespace stoker::transform
