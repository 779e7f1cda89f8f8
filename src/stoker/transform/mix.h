// Samples of a batch mixed with one another, as torchvision's MixUp and CutMix do: every row with the one before it,
// the first with the last. Labels become shares of classes. Pure; from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "stoker/base/pixels.h"
#include "stoker/base/random.h"
#include "stoker/transform/ops.h"
#include "stoker/transform/output.h"

namespace stoker::transform {

// What is done to every batch. Compiled from the MixUp, CutMix or RandomChoice of both at the end of a list.
struct MixPlan {
  std::optional<MixUp> mixup;
  std::optional<CutMix> cutmix;
  double cutmix_share = 0.5;  // where both are there
  std::uint32_t classes = 0;  // columns of the labels

  double p() const noexcept { return mixup ? mixup->p : cutmix->p; }
  double smoothing() const noexcept { return mixup ? mixup->label_smoothing : cutmix->label_smoothing; }
};

// Takes them off `ops`. None: the list has no such operation. `class_count` is that of the data set, 0 where it has no
// classes. Throws Error(usage).
std::optional<MixPlan> take_mix(Ops& ops, std::uint64_t class_count);
// Throws Error(usage) where these outputs cannot be mixed.
void check_mix(const MixPlan& plan, std::span<const Output> outputs);

// What chance decided for one batch.
struct MixDraw {
  enum class How : std::uint8_t { nothing, mixup, cutmix } how = How::nothing;
  double share = 1;  // of the row itself; the other one has the rest
  Rect box;          // of CutMix: what comes from the other row
};
MixDraw draw_mix(const MixPlan& plan, Random& random, std::uint32_t width, std::uint32_t height) noexcept;

// `rows` images of output.view_bytes, one after another, in place.
void mix_rows(const MixDraw& draw, const Output& output, std::byte* data, std::uint64_t rows) noexcept;
// float32 [rows, classes]. A label that is no class gives a row of zeros.
void mix_labels(const MixPlan& plan, const MixDraw& draw, std::span<const std::int64_t> labels, float* into) noexcept;

}  // namespace stoker::transform
