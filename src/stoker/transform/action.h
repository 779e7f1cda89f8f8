// One thing that is done to the pixels of one image, with everything that chance decided. Augmentations draw a list of
// actions (draw_actions.h); apply_actions.h does them. Plain values.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "stoker/transform/augment_ops.h"

namespace stoker::transform {

enum class Act : std::uint8_t {
  flip_x,        // no figures
  flip_y,        // no figures
  brightness,    // factor
  contrast,      // factor
  saturation,    // factor
  hue,           // turn, -0.5 to 0.5
  gray,          // channels that leave
  invert,        // no figures
  posterize,     // bits that stay
  solarize,      // threshold
  autocontrast,  // no figures
  equalize,      // no figures
  sharpness,     // factor
  blur,          // kernel width, kernel height, sigma
  rotate,        // degrees counter-clockwise, 1: expand, 1: has a centre, its x, its y
  affine,        // degrees, shift x, shift y, scale, shear x, shear y in degrees, centre x, centre y
  perspective,   // x and y to which the corners go: top left, top right, bottom right, bottom left
  pad_crop,      // pixels added left, top, right, bottom; then x, y, width and height of what is kept
  erase,         // x, y, width, height; then the value of up to 4 channels, or of noise what is subtracted before a
                 // division by `fill`
  matrix,        // a, b, c, d, e, f: pixel (x, y) comes from (a x + b y + c, d x + e y + f), as Pillow's AFFINE
  solarize_add,  // what is added to values below 128
  mix_start,     // share of the image as it is. Chains follow: actions on that image, each ended by a mix_chain
  mix_chain,     // share of what the chain made; 1: it is the last one, and the sum becomes the image
  shift_values,  // what is added
  scale_values,  // what values are multiplied by
  gamma_values,  // the exponent
  noise_values,  // mean and deviation of what is added; from the generator keyed by `noise`
  box_blur,      // radius: Pillow's GaussianBlur
};
inline constexpr std::array<std::string_view, 28> kActs = {
    "flip_x",    "flip_y",    "brightness",   "contrast",     "saturation",   "hue",          "gray",
    "invert",    "posterize", "solarize",     "autocontrast", "equalize",     "sharpness",    "blur",
    "rotate",    "affine",    "perspective",  "pad_crop",     "erase",        "matrix",       "solarize_add",
    "mix_start", "mix_chain", "shift_values", "scale_values", "gamma_values", "noise_values", "box_blur"};

struct Action {
  Act what = Act::invert;
  std::array<double, 8> figures{};
  Filter filter = Filter::nearest;
  Padding padding = Padding::constant;
  std::array<float, 4> fill{};  // of pixels from outside the image, in its own values; of erase: see there
  bool is_random = false;       // erase: with noise, from the generator keyed by `noise`
  std::uint64_t noise = 0;
};

// Takes the actions of one image in order.
class ActionSink {
 public:
  virtual ~ActionSink() = default;
  virtual void act(const Action& action) noexcept = 0;
};

struct ImageSize {
  std::uint32_t width = 0, height = 0, channels = 0;
};

// What leaves an action.
ImageSize size_after(const Action& action, const ImageSize& size) noexcept;

}  // namespace stoker::transform
