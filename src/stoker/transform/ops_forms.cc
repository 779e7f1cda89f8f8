#include "stoker/transform/ops_forms.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/ascii.h"
#include "stoker/base/error.h"
#include "stoker/transform/ops_check.h"

namespace stoker::transform {

constinit const std::array<Form, std::variant_size_v<decltype(Op::what)>> kForms = {{
    {"RandomResizedCrop",
     "rrc",
     {"randomresizedcrop", ""},
     "rrc:224:scale=0.2..1:ratio=0.75..1.33:filter=bicubic",
     "random area and aspect, resized to 224x224 (rrc:HxW for another shape)"},
    {"Resize",
     "resize",
     {"", ""},
     "resize:256:filter=bilinear",
     "shorter side becomes 256 (resize:HxW for both); filters: bilinear, bicubic, lanczos, nearest, box"},
    {"CenterCrop", "centercrop", {"ccrop", ""}, "centercrop:224", "the middle 224x224 (centercrop:HxW)"},
    {"HorizontalFlip", "flip", {"horizontalflip", "hflip"}, "flip:0.5", "mirrored with probability 0.5"},
    {"Normalize",
     "normalize",
     {"", ""},
     "normalize:imagenet",
     "(x/255 - mean) / std; own figures: normalize:0.5/0.5 or normalize:0.485+0.456+0.406/0.229+0.224+0.225"},
    {"ToFloat", "tofloat", {"", ""}, "tofloat", "float32 in [0, 1]"},
    {"Window",
     "window",
     {"", ""},
     "window:level=-700..100:width=300..2000:offset=32768",
     "16-bit slices: a random or fixed (level=40) window becomes [0, 1]"},
    {"PadOrTrim", "pad", {"padortrim", ""}, "pad:8000", "audio: exactly 8000 frames, from the start"},
    {"Resample", "resample", {"", ""}, "resample:16000", "audio: to 16000 Hz"},
    {"Mono", "mono", {"", ""}, "mono", "audio: mean of the channels"},
    {"Views",
     "views",
     {"", ""},
     "views(big=2[rrc:224,flip],small=8[rrc:96,flip])",
     "one decode, many views: name=count[operations]"},
    {"ColorJitter",
     "color_jitter",
     {"jitter", ""},
     "color_jitter:0.4:0.4:0.2:0.1",
     "random brightness, contrast, saturation and hue, in a random order; ranges: brightness=0.8..1.2"},
    {"Grayscale", "grayscale", {"gray", ""}, "grayscale:1", "gray, as 1 or 3 channels"},
    {"VerticalFlip", "vertical_flip", {"vflip", "randomverticalflip"}, "vertical_flip:0.5", "upside down by chance"},
    {"RandomInvert", "invert", {"random_invert", ""}, "invert:0.5", "255 - x by chance"},
    {"RandomAutocontrast", "autocontrast", {"random_autocontrast", ""}, "autocontrast:0.5", "by chance"},
    {"RandomEqualize", "equalize", {"random_equalize", ""}, "equalize:0.5", "an even histogram by chance"},
    {"RandomGrayscale", "random_grayscale", {"random_gray", ""}, "random_grayscale:0.1", "gray by chance"},
    {"RandomPosterize", "posterize", {"random_posterize", ""}, "posterize:4:0.5", "fewer bits by chance"},
    {"RandomSolarize",
     "solarize",
     {"random_solarize", ""},
     "solarize:128:0.5",
     "values from the threshold on are inverted, by chance"},
    {"RandomAdjustSharpness",
     "sharpness",
     {"random_adjust_sharpness", ""},
     "sharpness:2:0.5",
     "sharper (above 1) or smoother, by chance"},
    {"GaussianBlur", "gaussian_blur", {"blur", ""}, "gaussian_blur:23:0.1..2", "kernel size, sigma"},
    {"RandomApply", "random_apply", {"", ""}, "random_apply:0.8[color_jitter:0.4,blur:9]", "all of them, by chance"},
    {"RandomChoice", "random_choice", {"", ""}, "random_choice[equalize:1,invert:1]", "one of them; weights: p=1+3"},
    {"RandomOrder", "random_order", {"", ""}, "random_order[equalize:1,invert:1]", "all of them, in a random order"},
    {"RandAugment", "randaug", {"rand_augment", ""}, "randaug:2:9", "that many random operations, of that magnitude"},
    {"TrivialAugmentWide",
     "trivialaug",
     {"trivial_augment_wide", ""},
     "trivialaug",
     "one random operation of a random magnitude"},
    {"AutoAugment",
     "autoaug",
     {"auto_augment", ""},
     "autoaug:imagenet",
     "one of 25 learned pairs of operations; policies: imagenet, cifar10, svhn"},
    {"RandomErasing",
     "random_erasing",
     {"erasing", ""},
     "random_erasing:0.25:0.02..0.33:0.3..3.3:value=0",
     "a random rectangle is overwritten, by chance; with noise: random=true"},
    {"Pad", "padding", {"", ""}, "padding:4:fill=0:padding_mode=reflect", "more pixels around the image"},
    {"RandomCrop",
     "random_crop",
     {"", ""},
     "random_crop:32:4",
     "32x32 from a random place, after 4 pixels were added around; random_crop:96+128 for another shape"},
    {"RandomRotation", "random_rotation", {"rotate", ""}, "random_rotation:15", "turned by up to 15 degrees"},
    {"RandomAffine",
     "random_affine",
     {"affine", ""},
     "random_affine:10:translate=0.1+0.1:scale=0.9..1.1:shear=-5+5",
     "turned, shifted, scaled and sheared"},
    {"RandomPerspective", "random_perspective", {"perspective", ""}, "random_perspective:0.5:0.5", "by chance"},
    {"RandomZoomOut",
     "zoom_out",
     {"random_zoom_out", ""},
     "zoom_out:0:1..4:0.5",
     "a larger canvas around the image, by chance"},
    {"MixUp", "mixup", {"", ""}, "mixup:0.2:1000", "batches: each row and the one before it, mixed; alpha, classes"},
    {"CutMix", "cutmix", {"", ""}, "cutmix:1:1000", "batches: a rectangle of each row comes from the one before it"},
    {"FiveCrop", "five_crop", {"", ""}, "five_crop:224", "the corners and the middle, as five views"},
    {"TenCrop", "ten_crop", {"", ""}, "ten_crop:224", "five_crop of the image and of the mirrored one, as ten views"},
    {"RandomTrim", "random_trim", {"", ""}, "random_trim:16000", "audio: exactly 16000 frames, from a random place"},
    {"Vol", "vol", {"", ""}, "vol:0.5:db", "audio: a fixed gain, clipped to [-1, 1]; gain_type: amplitude, power, db"},
    {"Gain", "gain", {"", ""}, "gain:-18:6:0.5", "audio: a random gain between two numbers of decibels, by chance"},
    {"PolarityInversion",
     "polarity_inversion",
     {"invert_polarity", ""},
     "polarity_inversion:0.5",
     "audio: -x by chance"},
    {"Shift",
     "shift",
     {"roll", ""},
     "shift:-0.5:0.5:p=0.5",
     "audio: moved in time by a share of its length, by chance"},
    {"MelSpectrogram",
     "mel",
     {"melspectrogram", "mel_spectrogram"},
     "mel:16000:400:hop_length=160:n_mels=80",
     "audio: sample rate, n_fft; also win_length, f_min, f_max, pad, power, normalized, center, pad_mode, norm, "
     "mel_scale"},
    {"MFCC", "mfcc", {"", ""}, "mfcc:16000:40:n_fft=400:hop_length=160", "audio: sample rate, coefficients"},
    {"AmplitudeToDB",
     "db",
     {"amplitude_to_db", ""},
     "db:power:80",
     "spectrograms: decibels, at most 80 below the largest"},
    {"FrequencyMasking",
     "freq_mask",
     {"frequency_masking", ""},
     "freq_mask:27",
     "spectrograms: up to 26 bands become 0"},
    {"TimeMasking", "time_mask", {"time_masking", ""}, "time_mask:100:p=0.5", "spectrograms: up to 99 steps become 0"},
    {"TimmRandAugment",
     "timm_randaug",
     {"timm_rand_augment", ""},
     "timm_randaug:rand-m9-mstd0.5-inc1",
     "timm's RandAugment in its own words: m, n, p, mstd, mmax, inc, and the sets tweights, t3a, t3aw"},
    {"AugMix",
     "augmix",
     {"aug_mix", ""},
     "augmix:3:3",
     "the image mixed with 3 chains of random operations of a severity of up to 3"},
    {"RandShiftIntensity",
     "shift_intensity",
     {"rand_shift_intensity", ""},
     "shift_intensity:-0.1..0.1:0.5",
     "floats or 16 bits: a random number is added, by chance"},
    {"RandScaleIntensity",
     "scale_intensity",
     {"rand_scale_intensity", ""},
     "scale_intensity:-0.1..0.1:0.5",
     "floats or 16 bits: times 1 + a random number, by chance"},
    {"RandAdjustContrast",
     "adjust_contrast",
     {"rand_adjust_contrast", "gamma"},
     "adjust_contrast:0.5:0.7..1.5",
     "floats or 16 bits: a random gamma, by chance"},
    {"RandGaussianNoise",
     "gaussian_noise",
     {"rand_gaussian_noise", ""},
     "gaussian_noise:0.5:0:0.1",
     "floats or 16 bits: noise of that mean and of a deviation of up to that, by chance"},
    {"RandFlip", "rand_flip", {"", ""}, "rand_flip:0.5:0", "volumes: an axis (0, 1, 2: z, y, x) mirrored, by chance"},
    {"RandRotate90",
     "rand_rotate90",
     {"rand_rot90", ""},
     "rand_rotate90:0.5:3:1+2",
     "volumes: up to 3 quarter turns in the plane of two axes, by chance"},
    {"RandAffine",
     "rand_affine",
     {"", ""},
     "rand_affine:0.5:rotate_range=-0.2+0.2:scale_range=-0.1+0.1+-0.1+0.1",
     "volumes: turned (radians), sheared, shifted (voxels) and scaled by chance; low and high for each axis"},
}};

void refuse(const std::string& message, const std::string& hint) {
  throw Error(ErrorKind::usage, message, hint).about("transform");
}

void check_depth(std::size_t depth) {
  constexpr std::size_t kDeepest = 16;
  if (depth > kDeepest) {
    refuse(fmt::format("cannot read the transform: operations lie in more than {} others", kDeepest),
           "write operations of one list side by side");
  }
}

void refuse_argument(const Form& form, std::string_view cause) {
  refuse(fmt::format("cannot use transform `{}`: {}", form.full, cause), fmt::format("for example `{}`", form.example));
}

Span spread(const Form& form, std::string_view name, double value, const Limits& limits) {
  if (std::isnan(limits.center)) return {value, value};
  if (!(value >= 0)) refuse_argument(form, fmt::format("{} = {} is below 0: give a range instead", name, value));
  return {std::max(limits.least == 0 ? 0 : -std::numeric_limits<double>::infinity(), limits.center - value),
          limits.center + value};
}

std::size_t find_form(std::string_view name) {
  const std::string word = to_lower(name);
  std::vector<std::string_view> known;
  for (std::size_t i = 0; i < kForms.size(); ++i) {
    if (name == kForms[i].full) return i;  // first: `Pad` is not `pad`
  }
  for (std::size_t i = 0; i < kForms.size(); ++i) {
    const Form& form = kForms[i];
    if (word == form.text || word == form.aliases[0] || word == form.aliases[1] || word == to_lower(form.full)) {
      if (!word.empty()) return i;
    }
    known.push_back(form.text);
    for (const std::string_view alias : form.aliases) {
      if (!alias.empty()) known.push_back(alias);
    }
  }
  if (word.empty()) {
    refuse("cannot read the transform: an operation between commas is empty",
           "for example `rrc:224,flip,normalize:imagenet`");
  }
  const std::string near = nearest(word, known.data(), known.size());
  if (near.empty()) {
    std::string names;
    for (const Form& form : kForms) names += fmt::format("{}{}", names.empty() ? "" : ", ", form.text);
    refuse(fmt::format("unknown transform `{}`", name), fmt::format("known are {}", names));
  }
  refuse(fmt::format("unknown transform `{}`: did you mean `{}`?", name, near),
         fmt::format("for example `{}`", kForms[find_form(near)].example));
}

bool holds_ops(std::size_t which) {
  return which == index_of<RandomApply>() || which == index_of<RandomChoice>() || which == index_of<RandomOrder>();
}

Normalize imagenet() {
  return {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
}

std::string_view name(Filter filter) noexcept {
  return kFilters[static_cast<std::size_t>(filter)];
}

std::string_view name(const Op& op) noexcept {
  return kForms[op.what.index()].full;
}

bool is_for_audio(const Op& op) noexcept {
  return std::visit(
      [](const auto& what) {
        using T = std::decay_t<decltype(what)>;
        return AudioOperation<T> || std::is_same_v<T, PadOrTrim> || std::is_same_v<T, Resample> ||
               std::is_same_v<T, Mono>;
      },
      op.what);
}

std::string ops_help() {
  std::string text;
  for (const Form& form : kForms) {
    text += fmt::format("  {}\n      {}: {}\n", form.example, form.full, form.meaning);
  }
  return text;
}

}  // namespace stoker::transform
