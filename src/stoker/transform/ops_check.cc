#include "stoker/transform/ops_check.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/transform/ops_forms.h"

namespace stoker::transform {
namespace {

struct Check {
  static constexpr std::uint32_t kLargestSide = 65535;

  template <typename T>
  static void side(std::uint32_t value, std::string_view what) {
    if (value == 0 || value > kLargestSide) {
      refuse_argument(kForms[index_of<T>()], fmt::format("{} = {} is not between 1 and {}", what, value, kLargestSide));
    }
  }
  template <typename T>
  static void range(double low, double high, std::string_view what) {
    if (!(low <= high) || !std::isfinite(low) || !std::isfinite(high)) {
      refuse_argument(kForms[index_of<T>()], fmt::format("{} {}..{} does not go from low to high", what, low, high));
    }
  }

  void operator()(const RandomResizedCrop& op) const {
    side<RandomResizedCrop>(op.height, "height");
    side<RandomResizedCrop>(op.width, "width");
    range<RandomResizedCrop>(op.scale_min, op.scale_max, "scale");
    range<RandomResizedCrop>(op.ratio_min, op.ratio_max, "ratio");
    if (op.scale_min <= 0 || op.scale_max > 1) {
      refuse_argument(
          kForms[index_of<RandomResizedCrop>()],
          fmt::format("scale {}..{} is not a share of the area (above 0, at most 1)", op.scale_min, op.scale_max));
    }
    if (op.ratio_min <= 0) refuse_argument(kForms[index_of<RandomResizedCrop>()], "ratio must be above 0");
  }
  void operator()(const Resize& op) const {
    side<Resize>(op.height, "height");
    if (op.width != 0) side<Resize>(op.width, "width");
  }
  void operator()(const CenterCrop& op) const {
    side<CenterCrop>(op.height, "height");
    side<CenterCrop>(op.width, "width");
  }
  void operator()(const HorizontalFlip& op) const {
    if (!(op.p >= 0 && op.p <= 1)) {
      refuse_argument(kForms[index_of<HorizontalFlip>()], fmt::format("p = {} is not between 0 and 1", op.p));
    }
  }
  void operator()(const Normalize& op) const {
    const Form& form = kForms[index_of<Normalize>()];
    if (op.mean.empty() || op.mean.size() > 4 || op.mean.size() != op.std.size()) {
      refuse_argument(
          form, fmt::format("{} means and {} stds are not one of each per channel", op.mean.size(), op.std.size()));
    }
    for (std::size_t i = 0; i < op.mean.size(); ++i) {
      if (!std::isfinite(op.mean[i])) refuse_argument(form, fmt::format("mean {} is not a number", op.mean[i]));
      if (!(op.std[i] > 0) || !std::isfinite(op.std[i]))
        refuse_argument(form, fmt::format("std {} is not above 0", op.std[i]));
    }
  }
  void operator()(const ToFloat&) const {}
  void operator()(const Window& op) const {
    range<Window>(op.level_min, op.level_max, "level");
    range<Window>(op.width_min, op.width_max, "width");
    if (op.width_min <= 0)
      refuse_argument(kForms[index_of<Window>()], fmt::format("width {} is not above 0", op.width_min));
    if (op.offset && !std::isfinite(*op.offset)) refuse_argument(kForms[index_of<Window>()], "offset is not a number");
  }
  void operator()(const PadOrTrim& op) const {
    if (op.frames == 0 || op.frames > (std::uint64_t{1} << 40)) {
      refuse_argument(kForms[index_of<PadOrTrim>()], fmt::format("frames = {} is not between 1 and 2^40", op.frames));
    }
  }
  void operator()(const Resample& op) const {
    if (op.hz == 0 || op.hz > 10'000'000) {
      refuse_argument(kForms[index_of<Resample>()], fmt::format("hz = {} is not between 1 and 10000000", op.hz));
    }
  }
  void operator()(const Mono&) const {}
  void operator()(const Views& op) const {
    const Form& form = kForms[index_of<Views>()];
    if (op.groups.empty()) refuse_argument(form, "the groups are missing");
    for (const Views::Group& group : op.groups) {
      const bool plain = !group.name.empty() && std::all_of(group.name.begin(), group.name.end(), [](unsigned char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
      });
      if (!plain)
        refuse_argument(form, fmt::format("group name `{}` is not made of letters, digits and _", group.name));
      if (group.count == 0 || group.count > 1024) {
        refuse_argument(form, fmt::format("group `{}` has {} views, not 1 to 1024", group.name, group.count));
      }
      const auto same = [&](const Views::Group& other) { return other.name == group.name; };
      if (std::count_if(op.groups.begin(), op.groups.end(), same) > 1) {
        refuse_argument(form, fmt::format("group `{}` is given twice", group.name));
      }
      for (const Op& inner : group.ops) {
        if (std::holds_alternative<Views>(inner.what)) refuse_argument(form, "it cannot stand inside another Views");
        check_op(inner);
      }
    }
  }
};

}  // namespace

void check_op(const Op& op) {
  std::visit(Check{}, op.what);
}

void refuse(const Op& op, const Text& cause, const Text& hint) {
  throw Error(ErrorKind::usage, format_text("cannot use transform `{}`: {}", name(op), cause), hint).about("transform");
}

bool is_float(DType type) noexcept {
  return type == DType::f16 || type == DType::bf16 || type == DType::f32;
}

}  // namespace stoker::transform
