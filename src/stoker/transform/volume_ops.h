// The operations on patches of volumes that a user may declare, with MONAI's names, arguments and defaults. Axes are 0,
// 1 and 2 for z, y and x; negative ones count from the end. Fields are listed as in augment_ops.h. Plain values.
#pragma once

#include <cstdint>

#include "stoker/transform/augment_ops.h"

namespace stoker::transform {

// What a place outside the patch shows: the patch mirrored at its faces, its nearest voxel, or 0.
enum class Beyond : std::uint8_t { reflection, border, zeros };

struct RandFlip {
  using OfVolumes = void;
  double prob = 0.1;
  Numbers spatial_axis;  // all of these are mirrored; none: all three
  static void fields(auto& self, auto&& field) {
    field("prob", self.prob, kChance);
    field("spatial_axis", self.spatial_axis, Limits{-3, 2});
  }
};
struct RandRotate90 {
  using OfVolumes = void;
  double prob = 0.1;
  std::uint32_t max_k = 3;     // quarter turns: 1 to that, each equally likely
  Numbers spatial_axes{0, 1};  // from the first towards the second, as numpy.rot90
  static void fields(auto& self, auto&& field) {
    field("prob", self.prob, kChance);
    field("max_k", self.max_k, Limits{1, 3});
    field("spatial_axes", self.spatial_axes, Limits{-3, 2});
  }
};
struct RandAffine {
  using OfVolumes = void;
  double prob = 0.1;
  // Low and high of each number that is drawn: of up to 3 axes, of shears up to 6. None: not changed.
  Numbers rotate_range;     // radians, around the axes z, y, x
  Numbers shear_range;      // z by y, z by x, y by z, y by x, x by z, x by y
  Numbers translate_range;  // voxels
  Numbers scale_range;      // 1 is added
  Filter mode = Filter::bilinear;
  Beyond padding_mode = Beyond::reflection;
  static void fields(auto& self, auto&& field) {
    constexpr Limits range{-1e6, 1e6};
    field("prob", self.prob, kChance);
    field("rotate_range", self.rotate_range, range);
    field("shear_range", self.shear_range, range);
    field("translate_range", self.translate_range, range);
    field("scale_range", self.scale_range, range);
    field("mode", self.mode, Limits{});
    field("padding_mode", self.padding_mode, Limits{});
  }
};

template <typename T>
concept VolumeOperation = requires {
  typename T::OfVolumes;
};

}  // namespace stoker::transform
