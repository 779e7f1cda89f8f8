#include "stoker/transform/policies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "stoker/transform/distributions.h"

namespace stoker::transform {
namespace {

enum class Pick : std::uint8_t {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  color,
  contrast,
  sharpness,
  posterize,
  solarize,
  autocontrast,
  equalize,
  invert,
};
constexpr std::uint32_t kPicks = 14;  // of RandAugment and TrivialAugmentWide: all but invert

// How far each operation goes with the largest magnitude.
struct Furthest {
  double shear, translate_x, translate_y, rotate, colour, posterize;
  double bits = 8;  // that posterize keeps with the smallest one
};

// Entry `at` of torch.linspace(low, high, bins), which is float32 and counts from both ends.
double linspace(double low, double high, std::uint32_t bins, std::uint32_t at) noexcept {
  const auto first = static_cast<float>(low), last = static_cast<float>(high);
  const float step = (last - first) / static_cast<float>(bins - 1);
  return at < bins / 2 ? first + step * static_cast<float>(at) : last - step * static_cast<float>(bins - at - 1);
}

bool is_signed(Pick pick) noexcept {
  return pick >= Pick::shear_x && pick <= Pick::sharpness;
}

double magnitude_of(Pick pick, const Furthest& reach, std::uint32_t bins, std::uint32_t at) noexcept {
  switch (pick) {
    case Pick::shear_x:
    case Pick::shear_y:
      return linspace(0, reach.shear, bins, at);
    case Pick::translate_x:
      return linspace(0, reach.translate_x, bins, at);
    case Pick::translate_y:
      return linspace(0, reach.translate_y, bins, at);
    case Pick::rotate:
      return linspace(0, reach.rotate, bins, at);
    case Pick::brightness:
    case Pick::color:
    case Pick::contrast:
    case Pick::sharpness:
      return linspace(0, reach.colour, bins, at);
    case Pick::posterize:  // an integer tensor divided by a Python number: float32
      return reach.bits - std::nearbyint(static_cast<float>(at) / static_cast<float>((bins - 1) / reach.posterize));
    case Pick::solarize:
      return linspace(255, 0, bins, at);
    default:
      return 0;
  }
}

// torchvision's _apply_op.
void emit(Pick pick, double magnitude, Filter filter, const Numbers& fill, const ImageSize& size,
          ActionSink& sink) noexcept {
  Action action;
  action.filter = filter;
  action.fill = fill_of(fill);
  const auto simple = [&](Act what, double figure) {
    action.what = what;
    action.figures[0] = figure;
    sink.act(action);
  };
  const auto affine = [&](double shift_x, double shift_y, double shear_x, double shear_y, double x, double y) {
    action.what = Act::affine;
    action.figures = {0, shift_x, shift_y, 1, shear_x, shear_y, x, y};
    sink.act(action);
  };
  const double angle = std::atan(magnitude) * (180.0 / std::numbers::pi);
  switch (pick) {
    case Pick::identity:
      return;
    case Pick::shear_x:
      return affine(0, 0, angle, 0, 0, 0);
    case Pick::shear_y:
      return affine(0, 0, 0, angle, 0, 0);
    case Pick::translate_x:
      return affine(std::trunc(magnitude), 0, 0, 0, size.width * 0.5, size.height * 0.5);
    case Pick::translate_y:
      return affine(0, std::trunc(magnitude), 0, 0, size.width * 0.5, size.height * 0.5);
    case Pick::rotate:
      return simple(Act::rotate, magnitude);
    case Pick::brightness:
      return simple(Act::brightness, 1.0 + magnitude);
    case Pick::color:
      return simple(Act::saturation, 1.0 + magnitude);
    case Pick::contrast:
      return simple(Act::contrast, 1.0 + magnitude);
    case Pick::sharpness:
      return simple(Act::sharpness, 1.0 + magnitude);
    case Pick::posterize:
      return simple(Act::posterize, std::trunc(magnitude));
    case Pick::solarize:
      return simple(Act::solarize, magnitude);
    case Pick::autocontrast:
      return simple(Act::autocontrast, 0);
    case Pick::equalize:
      return simple(Act::equalize, 0);
    case Pick::invert:
      return simple(Act::invert, 0);
  }
}

Furthest usual_reach(const ImageSize& size) noexcept {
  return {0.3, 150.0 / 331.0 * size.width, 150.0 / 331.0 * size.height, 30, 0.9, 4};
}

struct Chosen {
  Pick pick;
  double p;
  std::uint32_t at;  // of 10 magnitudes
};
using LearnedPair = std::array<Chosen, 2>;

constexpr LearnedPair kLearned[3][25] = {{
                                             {{{Pick::posterize, 0.4, 8}, {Pick::rotate, 0.6, 9}}},
                                             {{{Pick::solarize, 0.6, 5}, {Pick::autocontrast, 0.6, 0}}},
                                             {{{Pick::equalize, 0.8, 0}, {Pick::equalize, 0.6, 0}}},
                                             {{{Pick::posterize, 0.6, 7}, {Pick::posterize, 0.6, 6}}},
                                             {{{Pick::equalize, 0.4, 0}, {Pick::solarize, 0.2, 4}}},
                                             {{{Pick::equalize, 0.4, 0}, {Pick::rotate, 0.8, 8}}},
                                             {{{Pick::solarize, 0.6, 3}, {Pick::equalize, 0.6, 0}}},
                                             {{{Pick::posterize, 0.8, 5}, {Pick::equalize, 1.0, 0}}},
                                             {{{Pick::rotate, 0.2, 3}, {Pick::solarize, 0.6, 8}}},
                                             {{{Pick::equalize, 0.6, 0}, {Pick::posterize, 0.4, 6}}},
                                             {{{Pick::rotate, 0.8, 8}, {Pick::color, 0.4, 0}}},
                                             {{{Pick::rotate, 0.4, 9}, {Pick::equalize, 0.6, 0}}},
                                             {{{Pick::equalize, 0.0, 0}, {Pick::equalize, 0.8, 0}}},
                                             {{{Pick::invert, 0.6, 0}, {Pick::equalize, 1.0, 0}}},
                                             {{{Pick::color, 0.6, 4}, {Pick::contrast, 1.0, 8}}},
                                             {{{Pick::rotate, 0.8, 8}, {Pick::color, 1.0, 2}}},
                                             {{{Pick::color, 0.8, 8}, {Pick::solarize, 0.8, 7}}},
                                             {{{Pick::sharpness, 0.4, 7}, {Pick::invert, 0.6, 0}}},
                                             {{{Pick::shear_x, 0.6, 5}, {Pick::equalize, 1.0, 0}}},
                                             {{{Pick::color, 0.4, 0}, {Pick::equalize, 0.6, 0}}},
                                             {{{Pick::equalize, 0.4, 0}, {Pick::solarize, 0.2, 4}}},
                                             {{{Pick::solarize, 0.6, 5}, {Pick::autocontrast, 0.6, 0}}},
                                             {{{Pick::invert, 0.6, 0}, {Pick::equalize, 1.0, 0}}},
                                             {{{Pick::color, 0.6, 4}, {Pick::contrast, 1.0, 8}}},
                                             {{{Pick::equalize, 0.8, 0}, {Pick::equalize, 0.6, 0}}},
                                         },
                                         {
                                             {{{Pick::invert, 0.1, 0}, {Pick::contrast, 0.2, 6}}},
                                             {{{Pick::rotate, 0.7, 2}, {Pick::translate_x, 0.3, 9}}},
                                             {{{Pick::sharpness, 0.8, 1}, {Pick::sharpness, 0.9, 3}}},
                                             {{{Pick::shear_y, 0.5, 8}, {Pick::translate_y, 0.7, 9}}},
                                             {{{Pick::autocontrast, 0.5, 0}, {Pick::equalize, 0.9, 0}}},
                                             {{{Pick::shear_y, 0.2, 7}, {Pick::posterize, 0.3, 7}}},
                                             {{{Pick::color, 0.4, 3}, {Pick::brightness, 0.6, 7}}},
                                             {{{Pick::sharpness, 0.3, 9}, {Pick::brightness, 0.7, 9}}},
                                             {{{Pick::equalize, 0.6, 0}, {Pick::equalize, 0.5, 0}}},
                                             {{{Pick::contrast, 0.6, 7}, {Pick::sharpness, 0.6, 5}}},
                                             {{{Pick::color, 0.7, 7}, {Pick::translate_x, 0.5, 8}}},
                                             {{{Pick::equalize, 0.3, 0}, {Pick::autocontrast, 0.4, 0}}},
                                             {{{Pick::translate_y, 0.4, 3}, {Pick::sharpness, 0.2, 6}}},
                                             {{{Pick::brightness, 0.9, 6}, {Pick::color, 0.2, 8}}},
                                             {{{Pick::solarize, 0.5, 2}, {Pick::invert, 0.0, 0}}},
                                             {{{Pick::equalize, 0.2, 0}, {Pick::autocontrast, 0.6, 0}}},
                                             {{{Pick::equalize, 0.2, 0}, {Pick::equalize, 0.6, 0}}},
                                             {{{Pick::color, 0.9, 9}, {Pick::equalize, 0.6, 0}}},
                                             {{{Pick::autocontrast, 0.8, 0}, {Pick::solarize, 0.2, 8}}},
                                             {{{Pick::brightness, 0.1, 3}, {Pick::color, 0.7, 0}}},
                                             {{{Pick::solarize, 0.4, 5}, {Pick::autocontrast, 0.9, 0}}},
                                             {{{Pick::translate_y, 0.9, 9}, {Pick::translate_y, 0.7, 9}}},
                                             {{{Pick::autocontrast, 0.9, 0}, {Pick::solarize, 0.8, 3}}},
                                             {{{Pick::equalize, 0.8, 0}, {Pick::invert, 0.1, 0}}},
                                             {{{Pick::translate_y, 0.7, 9}, {Pick::autocontrast, 0.9, 0}}},
                                         },
                                         {
                                             {{{Pick::shear_x, 0.9, 4}, {Pick::invert, 0.2, 0}}},
                                             {{{Pick::shear_y, 0.9, 8}, {Pick::invert, 0.7, 0}}},
                                             {{{Pick::equalize, 0.6, 0}, {Pick::solarize, 0.6, 6}}},
                                             {{{Pick::invert, 0.9, 0}, {Pick::equalize, 0.6, 0}}},
                                             {{{Pick::equalize, 0.6, 0}, {Pick::rotate, 0.9, 3}}},
                                             {{{Pick::shear_x, 0.9, 4}, {Pick::autocontrast, 0.8, 0}}},
                                             {{{Pick::shear_y, 0.9, 8}, {Pick::invert, 0.4, 0}}},
                                             {{{Pick::shear_y, 0.9, 5}, {Pick::solarize, 0.2, 6}}},
                                             {{{Pick::invert, 0.9, 0}, {Pick::autocontrast, 0.8, 0}}},
                                             {{{Pick::equalize, 0.6, 0}, {Pick::rotate, 0.9, 3}}},
                                             {{{Pick::shear_x, 0.9, 4}, {Pick::solarize, 0.3, 3}}},
                                             {{{Pick::shear_y, 0.8, 8}, {Pick::invert, 0.7, 0}}},
                                             {{{Pick::equalize, 0.9, 0}, {Pick::translate_y, 0.6, 6}}},
                                             {{{Pick::invert, 0.9, 0}, {Pick::equalize, 0.6, 0}}},
                                             {{{Pick::contrast, 0.3, 3}, {Pick::rotate, 0.8, 4}}},
                                             {{{Pick::invert, 0.8, 0}, {Pick::translate_y, 0.0, 2}}},
                                             {{{Pick::shear_y, 0.7, 6}, {Pick::solarize, 0.4, 8}}},
                                             {{{Pick::invert, 0.6, 0}, {Pick::rotate, 0.8, 4}}},
                                             {{{Pick::shear_y, 0.3, 7}, {Pick::translate_x, 0.9, 3}}},
                                             {{{Pick::shear_x, 0.1, 6}, {Pick::invert, 0.6, 0}}},
                                             {{{Pick::solarize, 0.7, 2}, {Pick::translate_y, 0.6, 7}}},
                                             {{{Pick::shear_y, 0.8, 4}, {Pick::invert, 0.8, 0}}},
                                             {{{Pick::shear_x, 0.7, 9}, {Pick::translate_y, 0.8, 3}}},
                                             {{{Pick::shear_y, 0.8, 5}, {Pick::autocontrast, 0.7, 0}}},
                                             {{{Pick::shear_x, 0.7, 2}, {Pick::invert, 0.1, 0}}},
                                         }};

// Of AugMix; the last four with all_ops alone.
constexpr Pick kMixed[] = {Pick::shear_x,   Pick::shear_y,  Pick::translate_x,  Pick::translate_y, Pick::rotate,
                           Pick::posterize, Pick::solarize, Pick::autocontrast, Pick::equalize,    Pick::brightness,
                           Pick::color,     Pick::contrast, Pick::sharpness};
constexpr std::uint32_t kMixedAlways = 9, kMixedAll = 13;

// Shares that add up to 1, of a symmetric Dirichlet distribution, in float32 as torch has them.
void draw_shares(Random& random, double alpha, std::uint32_t count, float* shares) noexcept {
  std::array<double, AugMix::kMostChains> drawn{};
  double sum = 0;
  for (std::uint32_t i = 0; i < count; ++i) sum += drawn[i] = gamma_of(random, alpha);
  for (std::uint32_t i = 0; i < count; ++i) shares[i] = static_cast<float>(sum > 0 ? drawn[i] / sum : 1.0 / count);
}

}  // namespace

void draw_policy(const AugMix& op, Random& random, const ImageSize& size, ActionSink& sink) noexcept {
  constexpr std::uint32_t kBins = 10, kDeepest = 3;
  const Furthest reach{0.3, size.width / 3.0, size.height / 3.0, 30, 0.9, 4, 4};
  float of_image[2];  // as it is, and of all chains
  std::array<float, AugMix::kMostChains> of_chains{};
  draw_shares(random, op.alpha, 2, of_image);
  draw_shares(random, op.alpha, op.mixture_width, of_chains.data());
  Action action;
  action.what = Act::mix_start;
  action.figures[0] = of_image[0];
  sink.act(action);
  for (std::uint32_t chain = 0; chain < op.mixture_width; ++chain) {
    const auto depth = op.chain_depth >= 1 ? static_cast<std::uint32_t>(op.chain_depth) : 1 + random.below(kDeepest);
    for (std::uint32_t i = 0; i < depth; ++i) {
      const Pick pick = kMixed[random.below(op.all_ops ? kMixedAll : kMixedAlways)];
      double magnitude = magnitude_of(pick, reach, kBins, random.below(op.severity));
      if (is_signed(pick) && random.below(2) == 1) magnitude = -magnitude;
      emit(pick, magnitude, op.filter, op.fill, size, sink);
    }
    action.what = Act::mix_chain;
    action.figures[0] = of_chains[chain] * of_image[1];
    action.figures[1] = chain + 1 == op.mixture_width ? 1 : 0;
    sink.act(action);
  }
}

std::array<float, 4> fill_of(const Numbers& fill) noexcept {
  std::array<float, 4> values{};
  for (std::size_t c = 0; c < 4 && !fill.empty(); ++c)
    values[c] = static_cast<float>(fill.size() == 1 ? fill[0] : c < fill.size() ? fill[c] : 0);
  return values;
}

void draw_policy(const RandAugment& op, Random& random, const ImageSize& size, ActionSink& sink) noexcept {
  for (std::uint32_t i = 0; i < op.num_ops; ++i) {
    const auto pick = static_cast<Pick>(random.below(kPicks));
    double magnitude = magnitude_of(pick, usual_reach(size), op.bins, op.magnitude);
    if (is_signed(pick) && random.below(2) == 1) magnitude = -magnitude;
    emit(pick, magnitude, op.filter, op.fill, size, sink);
  }
}

void draw_policy(const TrivialAugmentWide& op, Random& random, const ImageSize& size, ActionSink& sink) noexcept {
  const Furthest wide{0.99, 32, 32, 135, 0.99, 6};
  const auto pick = static_cast<Pick>(random.below(kPicks));
  double magnitude = magnitude_of(pick, wide, op.bins, random.below(op.bins));
  if (is_signed(pick) && random.below(2) == 1) magnitude = -magnitude;
  emit(pick, magnitude, op.filter, op.fill, size, sink);
}

void draw_policy(const AutoAugment& op, Random& random, const ImageSize& size, ActionSink& sink) noexcept {
  for (const Chosen& chosen : kLearned[static_cast<std::size_t>(op.policy)][random.below(25)]) {
    const bool is_done = random.uniform() <= chosen.p, is_negative = random.below(2) == 0;
    if (!is_done) continue;
    double magnitude = magnitude_of(chosen.pick, usual_reach(size), 10, chosen.at);
    if (is_signed(chosen.pick) && is_negative) magnitude = -magnitude;
    emit(chosen.pick, magnitude, op.filter, op.fill, size, sink);
  }
}

}  // namespace stoker::transform
