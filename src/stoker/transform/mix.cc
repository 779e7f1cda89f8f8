#include "stoker/transform/mix.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/transform/distributions.h"
#include "stoker/transform/ops_check.h"
#include "stoker/transform/wide.h"

namespace stoker::transform {
namespace {

double beta_of(Random& random, double alpha) noexcept {
  const double a = gamma_of(random, alpha), b = gamma_of(random, alpha);
  return a + b > 0 ? a / (a + b) : 0.5;
}

// mine = other * rest + mine * share, each product rounded, as torch does it.
struct MixFloats {
  STOKER_KERNEL void run(const float* __restrict other, float* __restrict mine, std::size_t count, float share,
                         float rest) noexcept {
    for (std::size_t i = 0; i < count; ++i) mine[i] = other[i] * rest + mine[i] * share;
  }
};

// Calls `join(other, mine, count)` for pieces of every row and the same piece of the row before it, as it was.
template <typename T, typename Join>
void join_rows(T* first, std::size_t stride, std::size_t count, std::uint64_t rows, const Join& join) noexcept {
  constexpr std::size_t kPiece = 4096;
  std::array<T, kPiece> last;
  for (std::size_t at = 0; at < count; at += kPiece) {
    const std::size_t here = std::min(kPiece, count - at);
    T* const piece = first + at;
    std::memcpy(last.data(), piece + (rows - 1) * stride, here * sizeof(T));
    for (std::uint64_t row = rows - 1; row > 0; --row) {
      join(static_cast<const T*>(piece + (row - 1) * stride), piece + row * stride, here);
    }
    join(static_cast<const T*>(last.data()), piece, here);
  }
}

struct ImageShape {
  std::size_t width, height, channels;
  bool planar;
};
ImageShape shape_of(const Output& output) noexcept {
  if (output.layout == Layout::nhwc) return {output.shape[1], output.shape[0], output.shape[2], false};
  return {output.shape[2], output.shape[1], output.shape[0], output.layout == Layout::nchw};
}

}  // namespace

std::optional<MixPlan> take_mix(Ops& ops, std::uint64_t class_count) {
  if (ops.empty()) return std::nullopt;
  MixPlan plan;
  const Op op = ops.back();
  const auto add = [&](const Op& one) {
    if (const auto* const mixup = std::get_if<MixUp>(&one.what)) {
      plan.mixup = *mixup;
      return true;
    }
    if (const auto* const cutmix = std::get_if<CutMix>(&one.what)) {
      plan.cutmix = *cutmix;
      return true;
    }
    return false;
  };
  if (const auto* const choice = std::get_if<RandomChoice>(&op.what)) {
    const auto mixes = std::count_if(choice->ops.begin(), choice->ops.end(), add);
    if (mixes == 0) return std::nullopt;
    if (mixes != 2 || choice->ops.size() != 2 || !plan.mixup || !plan.cutmix)
      refuse(op, "of batches it takes one MixUp and one CutMix alone", "RandomChoice([CutMix(), MixUp()])");
    if (plan.mixup->p != plan.cutmix->p || plan.mixup->num_classes != plan.cutmix->num_classes ||
        plan.mixup->label_smoothing != plan.cutmix->label_smoothing)
      refuse(op, "its MixUp and its CutMix have different p, num_classes or label_smoothing", "give both the same");
    const bool is_first = std::holds_alternative<CutMix>(choice->ops[0].what);
    if (!choice->p.empty()) plan.cutmix_share = choice->p[is_first ? 0 : 1] / (choice->p[0] + choice->p[1]);
  } else if (!add(op)) {
    return std::nullopt;
  }
  const std::uint32_t wanted = plan.mixup ? plan.mixup->num_classes : plan.cutmix->num_classes;
  if (class_count == 0 && wanted == 0)
    refuse(op, "the data set has no classes, and num_classes is not given", "give num_classes, or folders of classes");
  if (wanted != 0 && wanted < class_count)
    refuse(op, fmt::format("num_classes = {} is less than the {} classes of the data set", wanted, class_count));
  plan.classes = wanted != 0 ? wanted : static_cast<std::uint32_t>(class_count);
  ops.pop_back();
  return plan;
}

void check_mix(const MixPlan& plan, std::span<const Output> outputs) {
  const Op op = plan.mixup ? Op{*plan.mixup} : Op{*plan.cutmix};
  if (outputs.size() != 1 || outputs[0].views != 1) refuse(op, "it mixes one image per sample, not views");
  if (outputs[0].shape.size() != 3) refuse(op, "it mixes images, and these samples are none");
  if (plan.mixup && outputs[0].dtype != DType::f32)
    refuse(op, fmt::format("it mixes float32 images, and these are {}", name(outputs[0].dtype)),
           "add Normalize or ToFloat before it, and leave dtype out");
}

MixDraw draw_mix(const MixPlan& plan, Random& random, std::uint32_t width, std::uint32_t height) noexcept {
  MixDraw draw;
  if (random.uniform() >= plan.p()) return draw;
  const bool cuts = plan.cutmix && (!plan.mixup || random.uniform() < plan.cutmix_share);
  if (!cuts) {
    draw.how = MixDraw::How::mixup;
    draw.share = beta_of(random, plan.mixup->alpha);
    return draw;
  }
  draw.how = MixDraw::How::cutmix;
  const double half = 0.5 * std::sqrt(1 - beta_of(random, plan.cutmix->alpha));
  const auto x = static_cast<std::int64_t>(random.below(width)), y = static_cast<std::int64_t>(random.below(height));
  const auto half_width = static_cast<std::int64_t>(half * width),
             half_height = static_cast<std::int64_t>(half * height);
  const std::int64_t left = std::max<std::int64_t>(x - half_width, 0), top = std::max<std::int64_t>(y - half_height, 0);
  const std::int64_t right = std::min<std::int64_t>(x + half_width, width);
  const std::int64_t bottom = std::min<std::int64_t>(y + half_height, height);
  draw.box = {static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(top),
              static_cast<std::uint32_t>(right - left), static_cast<std::uint32_t>(bottom - top)};
  draw.share = 1 - static_cast<double>(draw.box.width) * draw.box.height / (static_cast<double>(width) * height);
  return draw;
}

void mix_rows(const MixDraw& draw, const Output& output, std::byte* data, std::uint64_t rows) noexcept {
  if (draw.how == MixDraw::How::nothing || rows < 2) return;
  if (draw.how == MixDraw::How::mixup) {
    const std::size_t count = output.view_bytes / sizeof(float);
    const auto share = static_cast<float>(draw.share), rest = static_cast<float>(1 - draw.share);
    join_rows(reinterpret_cast<float*>(data), count, count, rows,
              [&](const float* other, float* mine, std::size_t here) {
                run_kernel<MixFloats>(other, mine, here, share, rest);
              });
    return;
  }
  const ImageShape shape = shape_of(output);
  const std::size_t size = size_of(output.dtype), pixel = shape.planar ? size : size * shape.channels;
  for (std::size_t c = 0; c < (shape.planar ? shape.channels : 1); ++c) {
    for (std::size_t y = draw.box.y; y < draw.box.y + draw.box.height; ++y) {
      std::byte* const line = data + ((c * shape.height + y) * shape.width + draw.box.x) * pixel;
      join_rows(line, output.view_bytes, draw.box.width * pixel, rows,
                [](const std::byte* other, std::byte* mine, std::size_t here) { std::memcpy(mine, other, here); });
    }
  }
}

void mix_labels(const MixPlan& plan, const MixDraw& draw, std::span<const std::int64_t> labels, float* into) noexcept {
  const auto smoothing = static_cast<float>(plan.smoothing());
  const float off = smoothing / static_cast<float>(plan.classes), on = 1 - smoothing + off;
  const auto share = static_cast<float>(draw.share), rest = static_cast<float>(1 - draw.share);
  const auto is_class = [&](std::int64_t label) { return label >= 0 && label < plan.classes; };
  for (std::size_t row = 0; row < labels.size(); ++row, into += plan.classes) {
    const std::int64_t mine = labels[row], other = labels[row == 0 ? labels.size() - 1 : row - 1];
    const float base = is_class(mine) && is_class(other) ? off : 0;
    std::fill_n(into, plan.classes, base);
    if (!is_class(mine) || !is_class(other)) continue;
    into[mine] = mine == other ? on : on * share + off * rest;
    if (mine != other) into[other] = on * rest + off * share;
  }
}

}  // namespace stoker::transform
