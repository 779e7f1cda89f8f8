// The operations on values that a user may declare, with MONAI's names, arguments and defaults. They take float32,
// after Window, ToFloat or Normalize, or uint16. Fields are listed as in augment_ops.h. Plain values.
#pragma once

#include "stoker/transform/augment_ops.h"

namespace stoker::transform {

struct RandShiftIntensity {
  static constexpr bool kOnValues = true;
  Span offsets{0, 0};  // what is added
  double prob = 0.1;
  static void fields(auto& self, auto&& field) {
    field("offsets", self.offsets, Limits{-1e6, 1e6, 0});
    field("prob", self.prob, kChance);
  }
};
struct RandScaleIntensity {
  static constexpr bool kOnValues = true;
  Span factors{0, 0};  // values are multiplied by 1 + factor
  double prob = 0.1;
  static void fields(auto& self, auto&& field) {
    field("factors", self.factors, Limits{-1e6, 1e6, 0});
    field("prob", self.prob, kChance);
  }
};
struct RandAdjustContrast {
  static constexpr bool kOnValues = true;
  double prob = 0.1;
  Span gamma{0.5, 4.5};  // the exponent of a value's place between the least and the largest of its image
  static void fields(auto& self, auto&& field) {
    field("prob", self.prob, kChance);
    field("gamma", self.gamma, Limits{1e-3, 1e3});
  }
};
struct RandGaussianNoise {
  static constexpr bool kOnValues = true;
  double prob = 0.1, mean = 0, std = 0.1;
  bool sample_std = true;  // the deviation is drawn from 0 to std
  static void fields(auto& self, auto&& field) {
    field("prob", self.prob, kChance);
    field("mean", self.mean, Limits{-1e6, 1e6});
    field("std", self.std, Limits{0, 1e6});
    field("sample_std", self.sample_std, Limits{});
  }
};
template <typename T>
concept ValueOperation = requires {
  T::kOnValues;
};

}  // namespace stoker::transform
