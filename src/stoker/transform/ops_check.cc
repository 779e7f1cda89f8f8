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

// Checks one field of an augmentation.
void within(const Form& form, std::string_view name, double value, const Limits& limits) {
  if (value >= limits.least && value <= limits.most) return;
  refuse_argument(form, fmt::format("{} = {} is not between {} and {}", name, value, limits.least, limits.most));
}
void within(const Form& form, std::string_view name, const Span& value, const Limits& limits) {
  within(form, name, value.low, limits);
  within(form, name, value.high, limits);
  if (value.low > value.high)
    refuse_argument(form, fmt::format("{} {}..{} does not go from low to high", name, value.low, value.high));
}
void within(const Form& form, std::string_view name, const Numbers& value, const Limits& limits) {
  for (const double number : value) within(form, name, number, limits);
}
void within(const Form& form, std::string_view, const Ops& value, const Limits&) {
  if (value.empty()) refuse_argument(form, "it holds no operation");
  if (value.size() > 64) refuse_argument(form, fmt::format("it holds {} operations; the most are 64", value.size()));
  for (const Op& op : value) {
    if (std::holds_alternative<Views>(op.what)) refuse_argument(form, "Views cannot stand inside it");
    check_op(op);
  }
}
void within(const Form&, std::string_view, const TimmConfig&, const Limits&) {}  // read_timm_config has checked it
template <typename Word>
requires std::is_enum_v<Word> || std::is_same_v<Word, bool>
void within(const Form&, std::string_view, Word, const Limits&) {}

bool are_whole(const Numbers& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double number) { return number == std::floor(number); });
}
bool is_warp(Filter filter) {
  return filter != Filter::box && filter != Filter::lanczos;
}
constexpr const char* kOnlyWarps = "interpolation is nearest, bilinear or bicubic";

// What the limits of single fields cannot say; empty where nothing is wrong.
std::string fault_of(const auto&) {
  return {};
}
std::string fault_of(const Grayscale& op) {
  return op.channels == 2 ? "num_output_channels = 2 is not 1 or 3" : "";
}
std::string fault_of(const GaussianBlur& op) {
  const bool is_odd = are_whole(op.kernel) &&
                      std::all_of(op.kernel.begin(), op.kernel.end(), [](double k) { return std::fmod(k, 2) == 1; });
  if (op.kernel.empty() || op.kernel.size() > 2 || !is_odd)
    return fmt::format("kernel_size {} is not one or two odd whole numbers", fmt::join(op.kernel, ", "));
  return {};
}
std::string fault_of_padding(const Numbers& padding) {
  if ((padding.size() == 1 || padding.size() == 2 || padding.size() == 4) && are_whole(padding)) return {};
  return fmt::format("padding {} is not 1, 2 or 4 whole numbers", fmt::join(padding, ", "));
}
std::string fault_of(const Pad& op) {
  return fault_of_padding(op.padding);
}
std::string fault_of(const RandomCrop& op) {
  if (op.size.empty() || op.size.size() > 2 || !are_whole(op.size))
    return fmt::format("size {} is not a whole number, or height and width", fmt::join(op.size, ", "));
  return op.padding.empty() ? "" : fault_of_padding(op.padding);
}
std::string fault_of_size(const Numbers& size) {
  if (!size.empty() && size.size() <= 2 && are_whole(size)) return {};
  return fmt::format("size {} is not a whole number, or height and width", fmt::join(size, ", "));
}
std::string fault_of(const FiveCrop& op) {
  return fault_of_size(op.size);
}
std::string fault_of(const TenCrop& op) {
  return fault_of_size(op.size);
}
std::string fault_of_center(const Numbers& center) {
  return center.empty() || center.size() == 2 ? "" : "center is x and y";
}
std::string fault_of(const RandomRotation& op) {
  if (op.expand && !op.center.empty()) return "expand assumes that it turns around the middle: leave center out";
  return is_warp(op.filter) ? fault_of_center(op.center) : kOnlyWarps;
}
std::string fault_of(const RandomAffine& op) {
  if (!op.translate.empty() && op.translate.size() != 2)
    return "translate is a share of the width and one of the height";
  const bool is_span =
      op.shear.empty() || ((op.shear.size() == 2 || op.shear.size() == 4) && op.shear[0] <= op.shear[1] &&
                           (op.shear.size() == 2 || op.shear[2] <= op.shear[3]));
  if (!is_span) return "shear is low and high along x, or along x and y";
  return is_warp(op.filter) ? fault_of_center(op.center) : kOnlyWarps;
}
std::string fault_of(const RandomPerspective& op) {
  return is_warp(op.filter) ? "" : kOnlyWarps;
}
std::string fault_of(const RandAugment& op) {
  if (op.magnitude >= op.bins)
    return fmt::format("magnitude = {} is not below num_magnitude_bins = {}", op.magnitude, op.bins);
  return is_warp(op.filter) ? "" : kOnlyWarps;
}
std::string fault_of(const TrivialAugmentWide& op) {
  return is_warp(op.filter) ? "" : kOnlyWarps;
}
std::string fault_of(const AutoAugment& op) {
  return is_warp(op.filter) ? "" : kOnlyWarps;
}
std::string fault_of(const AugMix& op) {
  if (op.chain_depth != std::floor(op.chain_depth))
    return fmt::format("chain_depth = {} is not a whole number", op.chain_depth);
  return is_warp(op.filter) ? "" : kOnlyWarps;
}
std::string fault_of(const RandomErasing& op) {
  return op.value.empty() && !op.is_random ? "value is missing" : "";
}
std::string fault_of(const RandomChoice& op) {
  const bool has_weight = std::any_of(op.p.begin(), op.p.end(), [](double weight) { return weight > 0; });
  if (!op.p.empty() && (op.p.size() != op.ops.size() || !has_weight))
    return fmt::format("p has {} weights for {} operations, of which one must be above 0", op.p.size(), op.ops.size());
  return {};
}

std::string fault_of(const RandFlip& op) {
  return are_whole(op.spatial_axis) ? "" : "spatial_axis is 0, 1 or 2, or several of them";
}
std::string fault_of(const RandRotate90& op) {
  const Numbers& axes = op.spatial_axes;
  if (axes.size() == 2 && are_whole(axes) && std::fmod(axes[0] - axes[1], 3) != 0) return {};
  return fmt::format("spatial_axes {} is not two of 0, 1 and 2", fmt::join(axes, ", "));
}
std::string fault_of_ranges(std::string_view word, const Numbers& ranges, std::size_t most) {
  bool is_good = ranges.size() % 2 == 0 && ranges.size() <= 2 * most;
  for (std::size_t i = 0; i + 1 < ranges.size(); i += 2) is_good = is_good && ranges[i] <= ranges[i + 1];
  return is_good ? "" : fmt::format("{} is not a low and a high for each of up to {} numbers", word, most);
}
std::string fault_of(const RandAffine& op) {
  if (op.mode == Filter::bicubic) return "mode is bilinear or nearest";
  for (std::size_t i = 0; i < op.scale_range.size(); ++i) {
    if (op.scale_range[i] <= -1) return fmt::format("scale_range {} makes a scale of 0 or less", op.scale_range[i]);
  }
  for (const std::string& fault :
       {fault_of_ranges("rotate_range", op.rotate_range, 3), fault_of_ranges("shear_range", op.shear_range, 6),
        fault_of_ranges("translate_range", op.translate_range, 3), fault_of_ranges("scale_range", op.scale_range, 3)}) {
    if (!fault.empty()) return fault;
  }
  return {};
}

std::string fault_of(const Vol& op) {
  if (op.type == GainType::db || op.gain > 0 || (op.gain == 0 && op.type == GainType::amplitude)) return {};
  return fmt::format("gain = {} is not above 0; give decibels with gain_type db", op.gain);
}
std::string fault_of(const Gain& op) {
  if (op.least_db <= op.most_db) return {};
  return fmt::format("min_gain_in_db = {} is above max_gain_in_db = {}", op.least_db, op.most_db);
}
std::string fault_of(const Shift& op) {
  if (op.least <= op.most) return {};
  return fmt::format("min_shift = {} is above max_shift = {}", op.least, op.most);
}
std::string fault_of(const MelSpectrogram& op) {
  if (op.win_length > op.n_fft)
    return fmt::format("win_length = {} is not between 1 and n_fft = {}", op.win_length, op.n_fft);
  const double most = op.sample_rate / 2.0;
  if (op.f_max > most) return fmt::format("f_max = {} is above half the sample rate, {}", op.f_max, most);
  if (op.f_min >= (op.f_max > 0 ? op.f_max : op.sample_rate / 2))
    return fmt::format("f_min = {} is not below f_max = {}", op.f_min, op.f_max > 0 ? op.f_max : most);
  return {};
}
std::string fault_of(const MFCC& op) {
  if (op.n_mfcc > op.mel.n_mels)
    return fmt::format("n_mfcc = {} is not between 1 and n_mels = {}", op.n_mfcc, op.mel.n_mels);
  return fault_of(op.mel);
}

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
  template <Augmentation T>
  void operator()(const T& op) const {
    T::fields(op, [](std::string_view name, const auto& value, const Limits& limits) {
      within(kForms[index_of<T>()], name, value, limits);
    });
    if (const std::string cause = fault_of(op); !cause.empty()) refuse_argument(kForms[index_of<T>()], cause);
  }
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
