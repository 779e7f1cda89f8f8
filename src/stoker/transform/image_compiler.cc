// Reads a list of operations on images, in order, and refuses what cannot be.
#include <algorithm>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/transform/deep_actions.h"
#include "stoker/transform/image_program.h"
#include "stoker/transform/ops_check.h"
#include "stoker/transform/ops_forms.h"

namespace stoker::transform {
namespace {

// Every operation draws from a stream of its own, so that none shifts the numbers of another. A stream is named by the
// kind of operation and by which of its kind it is.
std::uint32_t stream_of(const Op& op, std::uint32_t occurrence) {
  return static_cast<std::uint32_t>(op.what.index()) * 256 + occurrence;
}

// Reads one list of image operations, in order, and refuses what cannot be.
class ImageCompiler {
 public:
  ImageCompiler(const ImageInput& input, const OutputOptions& options)
      : input_(input), options_(options), width_(input.width), height_(input.height), channels_(input.channels) {
    plan_.channels = channels_;
  }

  ImageProgram compile(const Ops& ops) {
    is_deep_ = input_.bits == 16 && (keeps_words() || std::any_of(ops.begin(), ops.end(), makes_floats));
    plan_.deep = is_deep_;
    for (const Op& op : ops) {
      check_op(op);
      std::visit([&](const auto& what) { add(op, what); }, op.what);
    }
    finish();
    for (; !stages_.empty(); stages_.pop_back()) {
      stages_.back().next = std::make_shared<const ImageProgram>(std::move(plan_));
      plan_ = std::move(stages_.back());
    }
    plan_.takes_words = is_deep_;
    return std::move(plan_);
  }

 private:
  void add(const Op& op, const RandomResizedCrop& what) {
    refuse_after_float(op);
    begin_geometry(op);
    Step step{Step::What::random_crop, what.height, what.width, what.filter, what, 0};
    step.stream = stream_of(op, steps_before_ + static_cast<std::uint32_t>(plan_.steps.size()));
    add_resize(op, step);
    fixed_ = true;
    width_ = what.width, height_ = what.height;
    shorter_ = std::min(width_, height_);
  }

  void add(const Op& op, const Resize& what) {
    refuse_after_float(op);
    begin_geometry(op);
    const bool exact = what.width != 0;
    add_resize(
        op, {exact ? Step::What::exact_size : Step::What::shorter_side, what.height, what.width, what.filter, {}, 0});
    if (exact) {
      fixed_ = true;
      width_ = what.width, height_ = what.height;
      shorter_ = std::min(width_, height_);
    } else {
      shorter_ = what.height;
      if (width_ != 0 && height_ != 0) std::tie(width_, height_) = shorter_side(width_, height_, what.height);
    }
  }

  void add(const Op& op, const CenterCrop& what) {
    begin_geometry(op);
    pads_ = pads_ || (fixed_ && (what.width > width_ || what.height > height_));
    if (pads_ && !plan_.mean.empty()) {
      refuse(op, "it pads the images with 0, and Normalize has changed what 0 means",
             "put CenterCrop before Normalize");
    }
    plan_.steps.push_back({Step::What::center_crop, what.height, what.width, Filter::bilinear, {}, 0});
    fixed_ = true;
    width_ = what.width, height_ = what.height;
    shorter_ = std::min(width_, height_);
  }

  void add(const Op& op, const HorizontalFlip& what) {
    if (std::exchange(has_flip_, true)) return add_augmentation(op, what);
    if (!plan_.erasings.empty()) {
      plan_.erasings.push_back({op, stream_of(op, 0), {}});
      return;
    }
    if (!plan_.augments.empty()) {  // among augmentations it needs no pass of its own
      plan_.augments.push_back({op, stream_of(op, 0), {}});
      return;
    }
    begin_geometry(op);
    plan_.has_flip = true;
    plan_.flip_p = what.p;
    plan_.flip_at = static_cast<std::uint32_t>(plan_.steps.size());
  }

  void add(const Op& op, const Normalize& what) {
    if (!plan_.mean.empty()) refuse(op, "it is given twice");
    refuse_after_values(op, true);
    if (what.mean.size() != 1 && what.mean.size() != channels_) {
      refuse(op,
             fmt::format("it has {} means, but the images have {} channel{}", what.mean.size(), channels_,
                         channels_ == 1 ? "" : "s"),
             format_text("give one mean and std per channel, or choose {}", option("color", {"rgb", "gray"})));
    }
    for (std::size_t c = 0; c < channels_; ++c) {
      plan_.mean.push_back(what.mean[what.mean.size() == 1 ? 0 : c]);
      plan_.std.push_back(what.std[what.mean.size() == 1 ? 0 : c]);
    }
    plan_.mean_at = static_cast<std::uint32_t>(plan_.steps.size());
    plan_.values = Values::unit;
    for (Augment& before : plan_.erasings) {
      if (auto* const erasing = std::get_if<RandomErasing>(&before.op.what)) normalize(*erasing);
    }
  }

  // Rectangles are written after Normalize, wherever they stand: what is written there is normalized here.
  void normalize(RandomErasing& erasing) const {
    erasing.mean.assign(plan_.mean.begin(), plan_.mean.end());
    erasing.std.assign(plan_.std.begin(), plan_.std.end());
    if (erasing.is_random) return;
    Numbers values;
    for (std::size_t c = 0; c < channels_; ++c) {
      const auto value = static_cast<float>(erasing.value[erasing.value.size() == 1 ? 0 : c]);
      values.push_back((value - static_cast<float>(plan_.mean[c])) / static_cast<float>(plan_.std[c]));
    }
    erasing.value = std::move(values);
  }

  void add(const Op& op, const ToFloat&) {
    if (!plan_.mean.empty()) refuse(op, "Normalize before it has made floats already", "leave ToFloat out");
    if (to_float_) refuse(op, "it is given twice");
    refuse_after_values(op);
    to_float_ = true;
    plan_.values = Values::unit;
  }

  void add(const Op& op, const Window& what) {
    if (has_window_) refuse(op, "it is given twice");
    if (input_.bits != 16) refuse(op, "it needs 16-bit images, and these have 8 bits", "leave Window out");
    refuse_after_float(op);
    refuse_after_values(op);
    if (!plan_.augments.empty()) begin_geometry(op);  // it works on what they leave
    has_window_ = plan_.has_window = true;
    plan_.window = what;
    plan_.window_last = plan_.resizes != 0;
    plan_.window_at = static_cast<std::uint32_t>(plan_.steps.size());
    plan_.values = Values::unit;
  }

  // RandomCrop without padding is a part of the geometry; with it, an augmentation as all others.
  void add(const Op& op, const RandomCrop& what) {
    if (!what.padding.empty() || what.pad_if_needed) return add_augmentation(op, what);
    refuse_after_float(op);
    begin_geometry(op);
    const auto height = static_cast<std::uint32_t>(what.size.front()),
               width = static_cast<std::uint32_t>(what.size.back());
    if (fixed_ && (height > height_ || width > width_)) {
      refuse(op,
             fmt::format("its {} are more than the images have: {}", height_by_width(height, width),
                         height_by_width(height_, width_)),
             "choose a smaller size, or set pad_if_needed");
    }
    Step step{Step::What::random_window, height, width, Filter::bilinear, {}, 0};
    step.stream = next_stream(op);
    plan_.steps.push_back(step);
    set_size(width, height);
  }

  void add(const Op& op, const RandomErasing& what) {
    check_channels(op);
    if (to_float_ || !plan_.mean.empty() || has_window_) {
      plan_.erasings.push_back(numbered(op));
      return;
    }
    if (what.is_random) {
      refuse(op, "noise from a normal distribution needs floats", "put it after Normalize or ToFloat, or give a value");
    }
    check_bytes(op, what);
    add_augmentation(op, what);
  }

  // 16-bit images are turned where they are stored, unless something follows that moves pixels.
  void add(const Op& op, const VerticalFlip& what) {
    if (!is_deep_ || !plan_.augments.empty()) return add_augmentation(op, what);
    plan_.erasings.push_back(numbered(op));
  }
  // Whether 16-bit images stay that without an operation that makes them float.
  bool keeps_words() const noexcept {
    return options_.dtype == DType::u16 || (input_.keeps_bits && options_.dtype != DType::u8);
  }
  static bool makes_floats(const Op& op) noexcept {
    return std::holds_alternative<Window>(op.what) || std::holds_alternative<ToFloat>(op.what);
  }

  template <ValueOperation T>
  void add(const Op& op, const T&) {
    if (!to_float_ && plan_.mean.empty() && !has_window_ && (input_.bits != 16 || !keeps_words())) {
      refuse(op, "it takes float32 or uint16 images, and pixels are bytes here",
             "put it after Normalize, ToFloat or Window");
    }
    if (first_value_op_.empty()) first_value_op_ = name(op);
    plan_.erasings.push_back(numbered(op));
  }

  // Flips move values, and may come before what computes each of them alone.
  void refuse_after_values(const Op& op, bool bears_erasing = false) const {
    for (const Augment& before : plan_.erasings) {
      if (bears_erasing && std::holds_alternative<RandomErasing>(before.op.what)) continue;
      if (!is_flip(before)) refuse(op, fmt::format("it cannot come after {}", name(before.op)), "put it before that");
    }
  }
  static bool is_flip(const Augment& augment) noexcept {
    return std::holds_alternative<VerticalFlip>(augment.op.what) ||
           std::holds_alternative<HorizontalFlip>(augment.op.what);
  }
  // Flips of 16-bit images are done where they stand, if something follows that moves pixels.
  void move_flips() {
    if (!is_deep_ || !plan_.augments.empty()) return;
    if (!std::all_of(plan_.erasings.begin(), plan_.erasings.end(), is_flip)) return;
    plan_.augments = std::exchange(plan_.erasings, {});
  }

  // Where pixels are still bytes.
  void check_bytes(const Op& op, const RandomErasing& what) const {
    for (const double value : what.value) {
      if (value >= 0 && value <= 255) continue;
      refuse(op, fmt::format("value {:g} is not between 0 and 255, and pixels are bytes here", value),
             "put it after Normalize or ToFloat, or give a value of a byte");
    }
  }

  void add(const Op& op, const FiveCrop& what) {
    refuse_after_float(op);
    begin_geometry(op);
    const auto height = static_cast<std::uint32_t>(what.size.front());
    const auto width = static_cast<std::uint32_t>(what.size.back());
    if (fixed_ && (height > height_ || width > width_)) {
      refuse(op,
             fmt::format("its {} are more than the images have: {}", height_by_width(height, width),
                         height_by_width(height_, width_)),
             "choose a smaller size");
    }
    Step step{Step::What::corner, height, width, Filter::bilinear, {}, 0};
    step.corner = what.corner;
    plan_.steps.push_back(step);
    set_size(width, height);
  }
  void add(const Op& op, const TenCrop&) { refuse(op, "it is given twice"); }

  void add(const Op& op, const MixUp&) { refuse_batch_op(op); }
  void add(const Op& op, const CutMix&) { refuse_batch_op(op); }
  [[noreturn]] static void refuse_batch_op(const Op& op) {
    refuse(op, "it mixes whole batches", "put it at the end of the list");
  }

  template <Augmentation T>
  requires(!ValueOperation<T>) void add(const Op& op, const T& what) {
    if constexpr (AudioOperation<T>) {
      refuse_audio(op);
    } else if constexpr (VolumeOperation<T>) {
      refuse(op, "it is for patches of volumes, and these are images", "leave it out");
    } else {
      add_augmentation(op, what);
    }
  }

  template <typename T>
  void add_augmentation(const Op& op, const T& what) {
    refuse_after_float(op);
    if (is_deep_ && !moves_pixels(op)) refuse_deep(op);
    check_channels(op);
    move_flips();
    refuse_after_erasings(op);
    check_size(op, what);
    plan_.augments.push_back(numbered(op));
  }

  [[noreturn]] void refuse_deep(const Op& op) const {
    if (has_window_) refuse(op, "it takes 8-bit images, and Window makes floats", "leave one of them out");
    refuse(op, "it takes 8-bit images, and these have 16 bits", "leave it out, or choose dtype uint8");
  }

  void refuse_after_erasings(const Op& op) const {
    if (plan_.erasings.empty()) return;
    const std::string_view before = name(plan_.erasings.front().op);
    refuse(op, fmt::format("it cannot come after {}", before), fmt::format("put {} last", before));
  }

  // What leaves the operation, for every image and for the first one; refuses what no image can bear.
  void check_size(const Op& op, const auto& what) {
    using T = std::decay_t<decltype(what)>;
    if constexpr (std::is_same_v<T, Grayscale>) {
      channels_ = what.channels;
    } else if constexpr (std::is_same_v<T, GaussianBlur>) {
      const auto across = static_cast<std::uint32_t>(what.kernel.front()),
                 down = static_cast<std::uint32_t>(what.kernel.back());
      if (fixed_ && (across / 2 >= width_ || down / 2 >= height_)) {
        refuse(op, fmt::format("its kernel of {}x{} is too large for images of {}x{}", across, down, width_, height_),
               "choose a smaller kernel_size");
      }
    } else if constexpr (std::is_same_v<T, Pad>) {
      const Numbers& p = what.padding;
      const double left = p.front(), top = p.size() == 1 ? p[0] : p[1], right = p.size() == 4 ? p[2] : left;
      const double bottom = p.size() == 4 ? p[3] : top;
      check_reflection(op, what.mode, std::max(left, right), std::max(top, bottom));
      if (width_ == 0 || height_ == 0) return;
      const bool was_fixed = fixed_;
      set_size(width_ + static_cast<std::uint32_t>(left + right), height_ + static_cast<std::uint32_t>(top + bottom));
      fixed_ = was_fixed;
    } else if constexpr (std::is_same_v<T, RandomCrop>) {
      const Numbers& p = what.padding;
      if (!p.empty()) {
        check_reflection(op, what.mode, p.size() == 4 ? std::max(p[0], p[2]) : p[0],
                         p.size() == 4 ? std::max(p[1], p[3]) : p.back());
      }
      const double left = p.empty() ? 0 : p.front(), top = p.empty() ? 0 : p.size() == 1 ? p[0] : p[1];
      const double more_x = p.size() == 4 ? p[0] + p[2] : 2 * left, more_y = p.size() == 4 ? p[1] + p[3] : 2 * top;
      if (fixed_ && !what.pad_if_needed &&
          (width_ + more_x < what.size.back() || height_ + more_y < what.size.front())) {
        refuse(op, "its size is larger than the padded images", "choose a smaller size, or set pad_if_needed");
      }
      set_size(static_cast<std::uint32_t>(what.size.back()), static_cast<std::uint32_t>(what.size.front()));
    } else if (!keeps_size(op)) {
      fixed_ = false;
      width_ = height_ = shorter_ = 0;
    }
    if constexpr (requires { what.ops; }) {
      for (const Op& inner : what.ops) check_held(op, inner);
    }
  }

  void check_reflection(const Op& op, Padding mode, double across, double down) const {
    if (mode != Padding::reflect || !fixed_ || (across < width_ && down < height_)) return;
    refuse(op,
           fmt::format("padding of {} and {} is too much for images of {}x{}: reflect adds less than a side", across,
                       down, width_, height_),
           "choose less padding, or padding_mode symmetric or edge");
  }

  // Of an operation inside RandomApply, RandomChoice or RandomOrder.
  void check_held(const Op& holder, const Op& op) const {
    const bool changes_channels =
        std::holds_alternative<Grayscale>(op.what) && channels_ != std::get<Grayscale>(op.what).channels;
    if (changes_channels) {
      refuse(holder, "Grayscale inside it would change the channels of some images alone",
             fmt::format("use RandomGrayscale, or num_output_channels={}", channels_));
    }
    const auto* const erasing = std::get_if<RandomErasing>(&op.what);
    if (erasing != nullptr && erasing->is_random)
      refuse(holder, "RandomErasing with noise needs floats, and cannot stand inside it");
    if (erasing != nullptr) check_bytes(op, *erasing);
    const bool is_mix = std::holds_alternative<MixUp>(op.what) || std::holds_alternative<CutMix>(op.what);
    if (is_mix) refuse(holder, fmt::format("{} mixes whole batches", name(op)), "put it at the end of the list");
    const bool is_views = std::holds_alternative<FiveCrop>(op.what) || std::holds_alternative<TenCrop>(op.what);
    if (is_views) refuse(holder, fmt::format("{} cannot stand inside it", name(op)));
    if (!is_augmentation(op) && !std::holds_alternative<HorizontalFlip>(op.what))
      refuse(holder, fmt::format("{} cannot stand inside it", name(op)), "flips and augmentations can");
    check_channels(op);
    std::visit(
        [&](const auto& what) {
          if constexpr (ValueOperation<std::decay_t<decltype(what)>>) {
            refuse(holder, fmt::format("{} takes floats or 16 bits, and cannot stand inside it", name(op)),
                   "give it a prob of its own");
          }
          if constexpr (requires { what.ops; }) {
            for (const Op& inner : what.ops) check_held(op, inner);
          }
        },
        op.what);
  }

  // Fill and value have one number per channel, and most operations take images without transparency.
  void check_channels(const Op& op) const {
    std::visit(
        [&](const auto& what) {
          using T = std::decay_t<decltype(what)>;
          const auto counts = [&](std::string_view word, const Numbers& numbers) {
            if (numbers.size() <= 1 || numbers.size() == channels_) return;
            refuse(op,
                   fmt::format("{} has {} numbers, but the images have {} channels", word, numbers.size(), channels_),
                   "give one number, or one per channel");
          };
          if constexpr (requires { what.fill; }) {
            counts("fill", what.fill);
            if (!is_deep_) check_fill(op, what.fill);
          }
          if constexpr (std::is_same_v<T, RandomErasing>) counts("value", what.value);
          if (channels_ == 1 || channels_ == 3) return;
          bool bears_alpha = std::is_same_v<T, VerticalFlip> || std::is_same_v<T, HorizontalFlip> ||
                             std::is_same_v<T, Pad> || std::is_same_v<T, RandomCrop> ||
                             std::is_same_v<T, RandomZoomOut> || std::is_same_v<T, RandomErasing>;
          if constexpr (requires { what.ops; }) bears_alpha = true;
          if constexpr (std::is_same_v<T, RandomRotation> || std::is_same_v<T, RandomAffine> ||
                        std::is_same_v<T, RandomPerspective>)
            bears_alpha = what.filter == Filter::nearest;
          if (bears_alpha) return;
          refuse(op, fmt::format("it takes gray and RGB images, and these have {} channels", channels_),
                 format_text("choose {}", option("color", {"rgb", "gray"})));
        },
        op.what);
  }

  static void check_fill(const Op& op, const Numbers& fill) {
    for (const double value : fill) {
      if (value >= 0 && value <= 255) continue;
      refuse(op, fmt::format("fill = {:g} is not between 0 and 255, and pixels are bytes here", value),
             "give a value of a byte; 16-bit images that stay that, as with Window, take any");
    }
  }

  // The operation with the number of its stream, and so those that it holds.
  Augment numbered(const Op& op) {
    Augment augment{op, next_stream(op), {}};
    std::visit(
        [&](const auto& what) {
          if constexpr (requires { what.ops; }) {
            for (const Op& inner : what.ops) augment.inner.push_back(numbered(inner));
          }
        },
        op.what);
    return augment;
  }

  std::uint32_t next_stream(const Op& op) {
    const auto seen = static_cast<std::uint32_t>(std::count(seen_.begin(), seen_.end(), op.what.index()));
    seen_.push_back(op.what.index());
    // Flips of the geometry have the first stream of their kind, whether or not there is one.
    return stream_of(op, seen + (std::holds_alternative<HorizontalFlip>(op.what) ? 1 : 0));
  }

  void set_size(std::uint32_t width, std::uint32_t height) {
    fixed_ = true;
    width_ = width, height_ = height;
    shorter_ = std::min(width_, height_);
  }

  // Geometry after augmentations works on what they leave.
  void begin_geometry(const Op& op) {
    move_flips();
    refuse_after_erasings(op);
    if (plan_.augments.empty()) return;
    ImageProgram next;
    next.channels = channels_;
    next.deep = is_deep_;
    next.values = std::exchange(plan_.values, Values::raw);
    next.mean = std::exchange(plan_.mean, {});
    next.std = std::exchange(plan_.std, {});
    steps_before_ += static_cast<std::uint32_t>(plan_.steps.size());
    pads_ = false;
    stages_.push_back(std::move(plan_));
    plan_ = std::move(next);
  }

  void add(const Op& op, const PadOrTrim&) { refuse_audio(op); }
  void add(const Op& op, const Resample&) { refuse_audio(op); }
  void add(const Op& op, const Mono&) { refuse_audio(op); }
  void add(const Op& op, const Views&) {
    refuse(op, "it stands alone", "put the other operations into the lists of its groups");
  }

  void add_resize(const Op& op, const Step& step) {
    if (pads_) {
      refuse(op, "it cannot resize what CenterCrop has padded", fmt::format("put CenterCrop after {}", name(op)));
    }
    if (plan_.resizes == kMostResizes) refuse(op, fmt::format("images are resized more than {} times", kMostResizes));
    plan_.filters[plan_.resizes] = step.filter;
    plan_.step_of[plan_.resizes] = static_cast<std::uint32_t>(plan_.steps.size());
    ++plan_.resizes;
    plan_.steps.push_back(step);
  }

  // Pillow resizes bytes: after the change to float the same operation would give other pixels.
  void refuse_after_float(const Op& op) const {
    if (to_float_ || !plan_.mean.empty()) {
      refuse(op, fmt::format("it cannot come after {}", plan_.mean.empty() ? "ToFloat" : "Normalize"),
             fmt::format("put {} before it", name(op)));
    }
  }

  [[noreturn]] static void refuse_audio(const Op& op) {
    refuse(op, "it is for audio, and these are images", "leave it out, or choose the audio of the data set");
  }

  void finish() {
    if (width_ == 0 || height_ == 0) {
      throw Error(ErrorKind::usage, "cannot compile the transform: the size of the images is not known",
                  "add Resize((height, width)) or RandomResizedCrop(size)");
    }
    const bool floats = plan_.values == Values::unit;
    const bool wants_words = options_.dtype == DType::u16;
    const bool keeps_bits = input_.bits == 16 && keeps_words();
    plan_.divides = is_deep_ && floats && !has_window_;
    const DType dtype = options_.dtype.value_or(floats ? DType::f32 : keeps_bits ? DType::u16 : DType::u8);
    if (dtype != DType::u8 && dtype != DType::u16 && !is_float(dtype)) {
      throw Error(ErrorKind::usage, fmt::format("cannot give images as {}", name(dtype)),
                  "choose dtype uint8, uint16, float16, bfloat16 or float32");
    }
    if (floats && !is_float(dtype)) {
      const std::string_view by = !plan_.mean.empty() ? "Normalize" : has_window_ ? "Window" : "ToFloat";
      throw Error(ErrorKind::usage, fmt::format("cannot give images as {}: {} makes them float", name(dtype), by),
                  fmt::format("leave {} out, or choose dtype float32, float16 or bfloat16", by));
    }
    if (wants_words && input_.bits != 16) {
      throw Error(ErrorKind::usage, "cannot give images as uint16: they have 8 bits per channel",
                  "leave dtype out, or choose uint8");
    }
    if (keeps_bits && !floats && dtype == DType::f16) {
      throw Error(ErrorKind::usage, "cannot give 16-bit images as float16: values above 65504 do not fit",
                  "add ToFloat, which gives [0, 1], or choose dtype uint16, bfloat16 or float32");
    }
    if (!first_value_op_.empty() && dtype != DType::f32 && dtype != DType::u16) {
      refuse(fmt::format("cannot use transform `{}`: it computes float32 or uint16, and images leave as {}",
                         first_value_op_, name(dtype)),
             "leave dtype out, or choose float32");
    }
    plan_.store = {width_, height_, channels_, options_.layout == Layout::nchw, dtype};
    if (!plan_.deep && dtype != DType::u8) make_table(dtype);
    if (plan_.deep && !plan_.mean.empty()) {
      for (std::uint32_t x = 0; x < width_; ++x) {
        plan_.mean_row.insert(plan_.mean_row.end(), plan_.mean.begin(), plan_.mean.end());
        plan_.std_row.insert(plan_.std_row.end(), plan_.std.begin(), plan_.std.end());
      }
    }
  }

  // The order of float32 operations is that of torchvision's ToTensor and Normalize.
  void make_table(DType dtype) {
    const std::size_t count = std::size_t{channels_} * 256;
    std::vector<float> figures(count);
    for (std::size_t i = 0; i < count; ++i) {
      float value = static_cast<float>(i % 256);
      if (plan_.values == Values::unit) value = value / 255.0F;
      if (!plan_.mean.empty()) {
        value = value - plan_.mean[i / 256];
        value = value / plan_.std[i / 256];
      }
      figures[i] = value;
    }
    plan_.table.resize(count * size_of(dtype));
    convert(figures.data(), count, dtype, plan_.table.data());
    if (dtype == DType::f32 && channels_ == 3) {
      plan_.store.scaling = find_scaling(figures.data(), plan_.values == Values::unit, plan_.mean, plan_.std);
    }
  }

  const ImageInput& input_;
  const OutputOptions& options_;
  ImageProgram plan_;                 // the last of the chain so far
  std::vector<ImageProgram> stages_;  // those before it
  std::vector<std::size_t> seen_;     // kinds of operations that have a stream
  std::string_view first_value_op_;   // the name of the first operation on values
  std::uint32_t steps_before_ = 0;    // in stages_
  bool has_flip_ = false;
  std::uint32_t width_, height_;  // so far, of the first image
  std::uint32_t channels_;        // so far
  bool fixed_ = false;            // for every image
  std::uint32_t shorter_ = 0;     // for every image; 0: not known
  bool is_deep_ = false;          // 16-bit images that do not become 8 bits first
  bool has_window_ = false;       // so far, in any program
  bool to_float_ = false;
  bool pads_ = false;  // a CenterCrop is larger than every image that reaches it
};

}  // namespace

ImageProgram compile_image(const Ops& ops, const ImageInput& input, const OutputOptions& options) {
  return ImageCompiler(input, options).compile(ops);
}

}  // namespace stoker::transform
