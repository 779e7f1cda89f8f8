// The augmentations of images that a user may declare, with torchvision's names, arguments and defaults. Each lists its
// fields once, in `fields`: the readers of JSON and of the short text, the writer and the check all follow that list.
// Plain values. ops.h has the other operations.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace stoker::transform {

// As Pillow's; antialiased where it shrinks. Warps take the first three.
enum class Filter : std::uint8_t { bilinear, bicubic, nearest, box, lanczos };
enum class Padding : std::uint8_t { constant, edge, reflect, symmetric };

struct Op;

// Drawn uniformly from [low, high]; equal: fixed.
struct Span {
  double low = 0, high = 0;
  friend bool operator==(const Span&, const Span&) = default;
};

// What a field takes. `center`: one number v means [center - v, center + v], clipped to `least`.
struct Limits {
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
  double center = std::numeric_limits<double>::quiet_NaN();
  bool zero_is_unset = false;  // 0 is what a field has that nobody gave: it cannot be given
};
inline constexpr Limits kChance{0, 1};
inline constexpr Limits kShare{0, 1};
inline constexpr Limits kFactor{0, 1e6};
inline constexpr Limits kAngle{-1e6, 1e6, 0};
inline constexpr Limits kSide{1, 65535};
inline constexpr Limits kByte{0, 255};
inline constexpr Limits kFillValue{-1e6, 1e6};  // in the image's own values; the compiler knows whether they are bytes

using Numbers = std::vector<double>;  // one for all channels or sides, or one for each

// ---- colour
struct ColorJitter {
  Span brightness{1, 1}, contrast{1, 1}, saturation{1, 1}, hue{0, 0};
  static void fields(auto& self, auto&& field) {
    constexpr Limits factor{0, 1e6, 1}, turn{-0.5, 0.5, 0};
    field("brightness", self.brightness, factor);
    field("contrast", self.contrast, factor);
    field("saturation", self.saturation, factor);
    field("hue", self.hue, turn);
  }
};
struct Grayscale {
  std::uint32_t channels = 1;
  static void fields(auto& self, auto&& field) { field("num_output_channels", self.channels, Limits{1, 3}); }
};
struct ByChance {  // applied with probability p; it has no other argument
  double p = 0.5;
  static void fields(auto& self, auto&& field) { field("p", self.p, kChance); }
};
struct VerticalFlip : ByChance {};
struct RandomInvert : ByChance {};
struct RandomAutocontrast : ByChance {};
struct RandomEqualize : ByChance {};
struct RandomGrayscale {
  double p = 0.1;
  static void fields(auto& self, auto&& field) { field("p", self.p, kChance); }
};
struct RandomPosterize {
  std::uint32_t bits = 4;
  double p = 0.5;
  static void fields(auto& self, auto&& field) {
    field("bits", self.bits, Limits{1, 8});
    field("p", self.p, kChance);
  }
};
struct RandomSolarize {
  double threshold = 128, p = 0.5;
  static void fields(auto& self, auto&& field) {
    field("threshold", self.threshold, Limits{0, 256});
    field("p", self.p, kChance);
  }
};
struct RandomAdjustSharpness {
  double factor = 2, p = 0.5;
  static void fields(auto& self, auto&& field) {
    field("sharpness_factor", self.factor, kFactor);
    field("p", self.p, kChance);
  }
};
struct GaussianBlur {
  Numbers kernel{3};  // width and height, odd; one number is both
  Span sigma{0.1, 2};
  static void fields(auto& self, auto&& field) {
    field("kernel_size", self.kernel, Limits{1, 255});
    field("sigma", self.sigma, Limits{1e-3, 1e3});
  }
};

// ---- geometry
struct Pad {
  Numbers padding{0};  // all sides; left and right, top and bottom; or left, top, right, bottom
  Numbers fill{0};
  Padding mode = Padding::constant;
  static void fields(auto& self, auto&& field) {
    field("padding", self.padding, Limits{0, 65535});
    field("fill", self.fill, kFillValue);
    field("padding_mode", self.mode, Limits{});
  }
};
struct RandomCrop {
  Numbers size{224};  // height and width; one number is both
  Numbers padding;    // none, or as in Pad
  bool pad_if_needed = false;
  Numbers fill{0};
  Padding mode = Padding::constant;
  static void fields(auto& self, auto&& field) {
    field("size", self.size, kSide);
    field("padding", self.padding, Limits{0, 65535});
    field("pad_if_needed", self.pad_if_needed, Limits{});
    field("fill", self.fill, kFillValue);
    field("padding_mode", self.mode, Limits{});
  }
};
struct RandomRotation {
  Span degrees{0, 0};
  Filter filter = Filter::nearest;
  bool expand = false;
  Numbers center;  // x and y in pixels; none: the middle
  Numbers fill{0};
  static void fields(auto& self, auto&& field) {
    field("degrees", self.degrees, kAngle);
    field("interpolation", self.filter, Limits{});
    field("expand", self.expand, Limits{});
    field("center", self.center, Limits{-1e6, 1e6});
    field("fill", self.fill, kFillValue);
  }
};
struct RandomAffine {
  Span degrees{0, 0};
  Numbers translate;  // none, or the most of the width and of the height
  Span scale{1, 1};
  Numbers shear;  // none; low and high along x; or the same along x and y
  Filter filter = Filter::nearest;
  Numbers fill{0};
  Numbers center;
  static void fields(auto& self, auto&& field) {
    field("degrees", self.degrees, kAngle);
    field("translate", self.translate, kShare);
    field("scale", self.scale, Limits{1e-3, 1e3});
    field("shear", self.shear, Limits{-89.9, 89.9});
    field("interpolation", self.filter, Limits{});
    field("fill", self.fill, kFillValue);
    field("center", self.center, Limits{-1e6, 1e6});
  }
};
struct RandomPerspective {
  double distortion_scale = 0.5, p = 0.5;
  Filter filter = Filter::bilinear;
  Numbers fill{0};
  static void fields(auto& self, auto&& field) {
    field("distortion_scale", self.distortion_scale, kShare);
    field("p", self.p, kChance);
    field("interpolation", self.filter, Limits{});
    field("fill", self.fill, kFillValue);
  }
};
struct RandomZoomOut {
  Numbers fill{0};
  Span side_range{1, 4};
  double p = 0.5;
  static void fields(auto& self, auto&& field) {
    field("fill", self.fill, kFillValue);
    field("side_range", self.side_range, Limits{1, 100});
    field("p", self.p, kChance);
  }
};

// Fixed crops: one decode, five or ten views.
enum class Corner : std::uint8_t { top_left, top_right, bottom_left, bottom_right, middle };
struct FiveCrop {
  Numbers size{224};                 // height and width; one number is both
  Corner corner = Corner::top_left;  // the plan sets it: one view each
  static void fields(auto& self, auto&& field) { field("size", self.size, kSide); }
};
struct TenCrop {  // FiveCrop of the image, and of the mirrored one
  Numbers size{224};
  bool vertical_flip = false;  // upside down instead
  static void fields(auto& self, auto&& field) {
    field("size", self.size, kSide);
    field("vertical_flip", self.vertical_flip, Limits{});
  }
};

// ---- policies
struct RandAugment {
  std::uint32_t num_ops = 2, magnitude = 9, bins = 31;
  Filter filter = Filter::nearest;
  Numbers fill{0};
  static void fields(auto& self, auto&& field) {
    field("num_ops", self.num_ops, Limits{0, 64});
    field("magnitude", self.magnitude, Limits{0, 1000});
    field("num_magnitude_bins", self.bins, Limits{2, 1001});
    field("interpolation", self.filter, Limits{});
    field("fill", self.fill, kByte);
  }
};
struct TrivialAugmentWide {
  std::uint32_t bins = 31;
  Filter filter = Filter::nearest;
  Numbers fill{0};
  static void fields(auto& self, auto&& field) {
    field("num_magnitude_bins", self.bins, Limits{2, 1001});
    field("interpolation", self.filter, Limits{});
    field("fill", self.fill, kByte);
  }
};
struct AugMix {  // chains of random operations, mixed with the image
  std::uint32_t severity = 3, mixture_width = 3;
  double chain_depth = -1;  // below 1: drawn from 1 to 3 for each chain
  double alpha = 1;
  bool all_ops = true;
  Filter filter = Filter::bilinear;
  Numbers fill{0};
  static void fields(auto& self, auto&& field) {
    field("severity", self.severity, Limits{1, 10});
    field("mixture_width", self.mixture_width, Limits{1, kMostChains});
    field("chain_depth", self.chain_depth, Limits{-1, 64});
    field("alpha", self.alpha, Limits{1e-3, 1e3});
    field("all_ops", self.all_ops, Limits{});
    field("interpolation", self.filter, Limits{});
    field("fill", self.fill, kByte);
  }
  static constexpr std::uint32_t kMostChains = 64;
};
inline constexpr double kTimmUniform = 101;  // timm takes every mstd above 100 for that
// What timm's RandAugment picks from: all alike; tweights and t3aw, by weight and each at most once; t3a, three alike.
enum class TimmSet : std::uint8_t { usual, weights, three, three_weighted };
// timm's own words for its RandAugment: "rand-m9-mstd0.5-inc1".
struct TimmConfig {
  std::uint32_t magnitude = 10;  // m, of 10
  std::uint32_t num_ops = 2;     // n
  double p = 0.5;                // of each operation
  double magnitude_std = 0;      // mstd: the magnitude is drawn around m; kTimmUniform: from 0 up to m
  std::uint32_t most = 10;       // mmax: larger magnitudes become this one
  bool is_increasing = false;    // inc: every operation is stronger with a larger magnitude
  TimmSet set = TimmSet::usual;  // t
};
enum class TimmFilter : std::uint8_t { random, bilinear, bicubic, nearest };  // random: bilinear or bicubic
struct TimmRandAugment {
  TimmConfig config;
  TimmFilter filter = TimmFilter::random;
  Numbers fill{128};
  static void fields(auto& self, auto&& field) {
    field("config", self.config, Limits{});
    field("interpolation", self.filter, Limits{});
    field("fill", self.fill, kByte);
  }
};
enum class Policy : std::uint8_t { imagenet, cifar10, svhn };
struct AutoAugment {
  Policy policy = Policy::imagenet;
  Filter filter = Filter::nearest;
  Numbers fill{0};
  static void fields(auto& self, auto&& field) {
    field("policy", self.policy, Limits{});
    field("interpolation", self.filter, Limits{});
    field("fill", self.fill, kByte);
  }
};

// ---- after the change to float, or before it
struct RandomErasing {
  double p = 0.5;
  Span scale{0.02, 0.33}, ratio{0.3, 3.3};
  Numbers value{0};        // one, or one per channel
  bool is_random = false;  // value="random": every element from a normal distribution
  Numbers mean, std;       // of a Normalize behind it, one per channel: set by the compiler, no argument
  static void fields(auto& self, auto&& field) {
    field("p", self.p, kChance);
    field("scale", self.scale, kShare);
    field("ratio", self.ratio, Limits{1e-3, 1e3});
    field("value", self.value, Limits{-1e6, 1e6});
    field("random", self.is_random, Limits{});
  }
};

// ---- control
struct RandomApply {
  std::vector<Op> ops;
  double p = 0.5;
  static void fields(auto& self, auto&& field) {
    field("transforms", self.ops, Limits{});
    field("p", self.p, kChance);
  }
};
struct RandomChoice {
  std::vector<Op> ops;
  Numbers p;  // the weight of each; none: all the same
  static void fields(auto& self, auto&& field) {
    field("transforms", self.ops, Limits{});
    field("p", self.p, Limits{0, 1e6});
  }
};
struct RandomOrder {
  std::vector<Op> ops;
  static void fields(auto& self, auto&& field) { field("transforms", self.ops, Limits{}); }
};

// ---- of a batch: the last of a list
struct MixUp {
  double alpha = 1;
  std::uint32_t num_classes = 0;  // 0: as many as the data set has
  double p = 1, label_smoothing = 0;
  static void fields(auto& self, auto&& field) {
    field("alpha", self.alpha, Limits{1e-3, 1e3});
    field("num_classes", self.num_classes, Limits{0, 1 << 24});
    field("p", self.p, kChance);
    field("label_smoothing", self.label_smoothing, kShare);
  }
};
struct CutMix : MixUp {};

template <typename T>
concept Augmentation = requires(T& op) {
  T::fields(op, [](auto&&...) {});
};

}  // namespace stoker::transform
