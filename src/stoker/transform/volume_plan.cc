#include "stoker/transform/volume_plan.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/format_text.h"
#include "stoker/base/random.h"
#include "stoker/transform/ops_check.h"
#include "stoker/transform/ops_forms.h"
#include "stoker/transform/take.h"
#include "stoker/transform/values.h"

namespace stoker::transform {
namespace {

constexpr std::uint32_t kVolumeStream = 0x766F6C75;  // apart from those of places in volumes

std::size_t axis_of(double axis) noexcept {
  return static_cast<std::size_t>(axis < 0 ? axis + 3 : axis);
}

class ValueActions final : public ActionSink {
 public:
  void act(const Action& action) noexcept override {
    last = action;
    has_any = true;
  }
  Action last;
  bool has_any = false;
};

void check_for_patches(const Op& op, const VolumeInput& input) {
  const DType dtype = input.image.dtype;
  const auto needs_floats = [&] {
    if (dtype == DType::f32) return;
    refuse(op, fmt::format("it computes float32, and patches leave as {}", name(dtype)),
           format_text("choose {}, such as {}", option("normalize"), option("normalize", "zscore")));
  };
  std::visit(
      [&](const auto& what) {
        using T = std::decay_t<decltype(what)>;
        if constexpr (VolumeOperation<T>) {
          if (input.is_grid) {
            refuse(op, "it moves voxels, and patches of a grid are put back where they were",
                   format_text("leave it out, or choose {}", option("sampling", "uniform")));
          }
        }
        if constexpr (ValueOperation<T>) {
          needs_floats();
        } else if constexpr (std::is_same_v<T, RandAffine>) {
          if (what.mode != Filter::nearest) needs_floats();
          const std::uint64_t voxels = std::uint64_t{input.patch[0]} * input.patch[1] * input.patch[2];
          if (voxels > INT32_MAX) refuse(op, "the patch has 2^31 voxels or more", "choose a smaller patch");
        } else if constexpr (std::is_same_v<T, RandRotate90>) {
          const std::size_t first = axis_of(what.spatial_axes[0]), second = axis_of(what.spatial_axes[1]);
          if (input.patch[first] != input.patch[second]) {
            refuse(op,
                   fmt::format("it exchanges the axes {} and {} of a patch of {}, which differ in length", first,
                               second, fmt::join(input.patch, "x")),
                   "choose axes of one length, or a patch that has them");
          }
        } else if constexpr (!std::is_same_v<T, RandFlip>) {
          refuse(op, "patches of volumes do not take it",
                 "RandFlip, RandRotate90, RandAffine, RandShiftIntensity, RandScaleIntensity, RandAdjustContrast and "
                 "RandGaussianNoise are possible");
        }
      },
      op.what);
}

}  // namespace

VolumePlan VolumePlan::compile(const Ops& ops, const VolumeInput& input) {
  VolumePlan plan;
  plan.input_ = input;
  for (const Op& op : ops) {
    check_op(op);
    check_for_patches(op, input);
    const auto same = [&](const Augment& before) { return before.op.what.index() == op.what.index(); };
    const auto seen = std::count_if(plan.augments_.begin(), plan.augments_.end(), same);
    // As for images: the place in the variant, and which of its kind it is.
    plan.augments_.push_back(
        {op, static_cast<std::uint32_t>(op.what.index() * 256 + static_cast<std::size_t>(seen)), {}});
  }
  return plan;
}

std::string VolumePlan::describe() const {
  Ops ops;
  for (const Augment& augment : augments_) ops.push_back(augment.op);
  return to_text(ops);
}

std::size_t VolumePlan::voxels() const noexcept {
  return std::size_t{input_.patch[0]} * input_.patch[1] * input_.patch[2];
}

std::uint64_t VolumePlan::working_bytes() const noexcept {
  if (is_empty()) return 0;
  const std::size_t mask = input_.mask.channels == 0 ? 0 : size_of(input_.mask.dtype);
  return Scratch::rounded(voxels() * std::max(size_of(input_.image.dtype), mask));
}

std::uint64_t VolumePlan::key_of(std::uint64_t seed, std::uint64_t epoch, std::uint64_t id) noexcept {
  Random random(seed, epoch, id, kVolumeStream);
  const std::uint64_t low = random.next();
  return low | std::uint64_t{random.next()} << 32;
}

// Draws one operation, and hands its action to take(action) if it happens.
template <typename Take>
void VolumePlan::draw(const Augment& augment, std::uint64_t key, const Take& take) const noexcept {
  Random random(key, 0, 0, augment.stream);
  std::visit(
      [&](const auto& op) {
        using T = std::decay_t<decltype(op)>;
        VolumeAction action;
        if constexpr (VolumeOperation<T>) {
          if (!(random.uniform() < op.prob)) return;
        }
        if constexpr (std::is_same_v<T, RandFlip>) {
          for (std::size_t axis = 0; axis < 3; ++axis) {
            const bool is_named = std::any_of(op.spatial_axis.begin(), op.spatial_axis.end(),
                                              [&](double named) { return axis_of(named) == axis; });
            if (op.spatial_axis.empty() || is_named) action.turn.flip(axis);
          }
        } else if constexpr (std::is_same_v<T, RandRotate90>) {
          action.turn.rotate(axis_of(op.spatial_axes[0]), axis_of(op.spatial_axes[1]), 1 + random.below(op.max_k));
        } else if constexpr (std::is_same_v<T, RandAffine>) {
          const auto fill = [&](const Numbers& ranges, double more, auto& into) {
            for (std::size_t i = 0; i + 1 < ranges.size(); i += 2)
              into[i / 2] = random.uniform(ranges[i], ranges[i + 1]) + more;
          };
          action.what = VolumeAction::What::affine;
          fill(op.rotate_range, 0, action.affine.rotate);
          fill(op.shear_range, 0, action.affine.shear);
          fill(op.translate_range, 0, action.affine.translate);
          fill(op.scale_range, 1, action.affine.scale);
          action.mode = op.mode;
          action.beyond = op.padding_mode;
        } else {
          ImageSize size{input_.patch[2], input_.patch[1] * input_.patch[0], input_.image.channels};
          ValueActions drawn;
          if (!draw_actions(augment, key, size, drawn).ok() || !drawn.has_any) return;
          action.what = VolumeAction::What::values;
          action.values = drawn.last;
        }
        take(action);
      },
      augment.op.what);
}

std::vector<VolumeAction> VolumePlan::actions(std::uint64_t key) const {
  std::vector<VolumeAction> all;
  for (const Augment& augment : augments_)
    draw(augment, key, [&](const VolumeAction& action) { all.push_back(action); });
  return all;
}

Result VolumePlan::change(std::uint64_t key, const PatchForm& form, bool is_mask, std::byte* slot,
                          Scratch& scratch) const noexcept {
  const std::size_t element = size_of(form.dtype), bytes = voxels() * element;
  std::byte* const copy = take<std::byte>(scratch, bytes);
  if (copy == nullptr) return kNoRoom;
  // `move(from, to)` of each channel.
  const auto each_channel = [&](const auto& move) {
    for (std::uint32_t channel = 0; channel < form.channels; ++channel) {
      std::byte* const to = slot + channel * bytes;
      std::memcpy(copy, to, bytes);
      move(copy, to);
    }
  };
  AxisTurn pending;  // turns that follow one another are one pass
  const auto flush = [&] {
    const AxisTurn turn = std::exchange(pending, {});
    if (turn.changes_nothing()) return;
    each_channel([&](const std::byte* from, std::byte* to) { turn_patch(from, input_.patch, element, turn, to); });
  };
  const auto run = [&](const VolumeAction& action) {
    switch (action.what) {
      case VolumeAction::What::turn: {
        const AxisTurn before = pending;
        for (std::size_t axis = 0; axis < 3; ++axis) {
          const std::size_t from = action.turn.from[axis];
          pending.from[axis] = before.from[from];
          pending.mirrored[axis] = before.mirrored[from] != action.turn.mirrored[axis];
        }
        return;
      }
      case VolumeAction::What::affine: {
        flush();
        const PatchMatrix matrix = matrix_of(action.affine);
        return each_channel([&](const std::byte* from, std::byte* to) {
          if (is_mask || action.mode == Filter::nearest) {
            resample_nearest(from, input_.patch, element, matrix, action.beyond, to);
          } else {
            resample_linear(reinterpret_cast<const float*>(from), input_.patch, matrix, action.beyond,
                            reinterpret_cast<float*>(to));
          }
        });
      }
      case VolumeAction::What::values:
        if (is_mask) return;
        flush();  // noise has places
        return change_values(action.values,
                             {input_.patch[2], input_.patch[1] * input_.patch[0], form.channels, true, form.dtype, {}},
                             slot);
    }
  };
  for (const Augment& augment : augments_) draw(augment, key, run);
  flush();
  return {};
}

Result VolumePlan::apply(std::uint64_t key, std::byte* image, std::byte* mask, Scratch& scratch) const noexcept {
  if (is_empty()) return {};
  const Scratch::Mark mark = scratch.mark();
  Result result = change(key, input_.image, false, image, scratch);
  scratch.rewind(mark);
  if (!result.ok() || mask == nullptr) return result;
  result = change(key, input_.mask, true, mask, scratch);
  scratch.rewind(mark);
  return result;
}

}  // namespace stoker::transform
