// What the user declares: a list of operations, as a short text ("rrc:224,flip,normalize:imagenet") or as JSON (from
// Python).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "stoker/transform/audio_ops.h"
#include "stoker/transform/augment_ops.h"
#include "stoker/transform/value_ops.h"
#include "stoker/transform/volume_ops.h"

namespace stoker::transform {

struct RandomResizedCrop {
  std::uint32_t height = 224, width = 224;
  double scale_min = 0.08, scale_max = 1.0;
  double ratio_min = 3.0 / 4.0, ratio_max = 4.0 / 3.0;
  Filter filter = Filter::bilinear;
};
struct Resize {
  std::uint32_t height = 256, width = 0;  // width 0: the shorter side becomes `height`, the aspect is kept
  Filter filter = Filter::bilinear;
};
struct CenterCrop {
  std::uint32_t height = 224, width = 224;
};
struct HorizontalFlip {
  double p = 0.5;
};
struct Normalize {  // (x / 255 - mean) / std; x as it is after Window
  std::vector<float> mean, std;
};
struct ToFloat {};  // uint8 to [0, 1] float32, uint16 to [0, 1] by 65535, int16 (packed audio) to [-1, 1) by 32768;
                    // decoded audio is that already
struct Window {  // 16-bit slices: v - offset is the value in Hounsfield units; maps [level - width/2, level + width/2]
                 // to [0, 1]
  double level_min = -700, level_max = 100;  // equal: fixed; otherwise drawn per sample (and per view)
  double width_min = 300, width_max = 2000;
  std::optional<double> offset;  // none: the index.csv column hu_offset, or 0 where there is none
};
struct PadOrTrim {
  std::uint64_t frames = 16000;
};
struct Resample {
  std::uint32_t hz = 16000;
};
struct Mono {};  // mean of the channels

struct Views {  // one decode, many independently seeded views; one tensor per group
  struct Group {
    std::string name;
    std::uint32_t count = 1;
    std::vector<Op> ops;
  };
  std::vector<Group> groups;
};

struct Op {
  std::variant<RandomResizedCrop, Resize, CenterCrop, HorizontalFlip, Normalize, ToFloat, Window, PadOrTrim, Resample,
               Mono, Views, ColorJitter, Grayscale, VerticalFlip, RandomInvert, RandomAutocontrast, RandomEqualize,
               RandomGrayscale, RandomPosterize, RandomSolarize, RandomAdjustSharpness, GaussianBlur, RandomApply,
               RandomChoice, RandomOrder, RandAugment, TrivialAugmentWide, AutoAugment, RandomErasing, Pad, RandomCrop,
               RandomRotation, RandomAffine, RandomPerspective, RandomZoomOut, MixUp, CutMix, FiveCrop, TenCrop,
               RandomTrim, Vol, Gain, PolarityInversion, Shift, MelSpectrogram, MFCC, AmplitudeToDB, FrequencyMasking,
               TimeMasking, TimmRandAugment, AugMix, RandShiftIntensity, RandScaleIntensity, RandAdjustContrast,
               RandGaussianNoise, RandFlip, RandRotate90, RandAffine>
      what;
};

using Ops = std::vector<Op>;

bool is_for_audio(const Op& op) noexcept;  // and for nothing else

// Throws Error(usage) with one sentence: an unknown name offers the nearest, a wrong argument shows the right form.
Ops parse_ops(std::string_view text);
// A JSON list of objects {"op": "RandomResizedCrop", "height": 224, ...} with the field names above;
// an augmentation has the names of its `fields`; Views is {"op": "Views", "groups": [{"name": "big", "count": 2, "ops":
// [...]}, ...]}.
Ops ops_from_json(std::string_view json);
std::string to_text(const Ops& ops);  // the short text that parse_ops takes; for configs and messages

// The short forms with an example each, for --help and for messages.
std::string ops_help();

}  // namespace stoker::transform
