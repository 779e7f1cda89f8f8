// Operations on patches of volumes, compiled once for a data set: flips, quarter turns and affine warps of image and
// mask alike, and operations on the values of the image. They run in the slot, after the patch was cut and normalized.
// Immutable; safe from any thread; each thread brings its own Scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stoker/base/dtype.h"
#include "stoker/base/result.h"
#include "stoker/base/scratch.h"
#include "stoker/transform/action.h"
#include "stoker/transform/draw_actions.h"
#include "stoker/transform/ops.h"
#include "stoker/transform/patch_warp.h"

namespace stoker::transform {

// What lies in a slot: channels one after another, each z, y, x.
struct PatchForm {
  std::uint32_t channels = 0;  // 0: there is none
  DType dtype = DType::f32;
};
struct VolumeInput {
  PatchEdges patch{};
  PatchForm image, mask;
  bool is_grid = false;  // patches are put back into a volume later, and must not be moved
};

// What chance decided for one operation.
struct VolumeAction {
  enum class What : std::uint8_t { turn, affine, values } what = What::turn;
  AxisTurn turn;
  PatchAffine affine;
  Filter mode = Filter::bilinear;  // of the image; masks take the nearest voxel
  Beyond beyond = Beyond::reflection;
  Action values;
};

class VolumePlan {
 public:
  VolumePlan() = default;
  // Throws Error(usage) with one sentence naming the operation that cannot be.
  static VolumePlan compile(const Ops& ops, const VolumeInput& input);

  bool is_empty() const noexcept { return augments_.empty(); }
  std::string describe() const;                  // one line for people
  std::uint64_t working_bytes() const noexcept;  // at most what apply takes from the scratch

  // The key from which the operations of one sample are drawn.
  static std::uint64_t key_of(std::uint64_t seed, std::uint64_t epoch, std::uint64_t id) noexcept;
  std::vector<VolumeAction> actions(std::uint64_t key) const;
  // Changes the patches where they lie; `mask` may be null.
  Result apply(std::uint64_t key, std::byte* image, std::byte* mask, Scratch& scratch) const noexcept;

 private:
  template <typename Take>
  void draw(const Augment& augment, std::uint64_t key, const Take& take) const noexcept;
  Result change(std::uint64_t key, const PatchForm& form, bool is_mask, std::byte* slot,
                Scratch& scratch) const noexcept;
  std::size_t voxels() const noexcept;

  VolumeInput input_;
  std::vector<Augment> augments_;
};

}  // namespace stoker::transform
