#include "stoker/transform/plan.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/transform/half.h"
#include "stoker/transform/ops_check.h"
#include "stoker/transform/resize.h"
#include "stoker/transform/sinc.h"
#include "stoker/transform/store.h"

namespace stoker::transform {

static_assert(std::is_trivially_copyable_v<Draw>);

namespace {

constexpr std::uint32_t kMostResizes = std::size(Draw{}.steps) - 1;
constexpr Result kNoMemory = failed(Code::no_memory, "no room to transform the sample: raise memory_limit");

[[noreturn]] void refuse(const Op& op, std::string_view cause, std::string hint = {}) {
  throw Error(ErrorKind::usage, fmt::format("cannot use transform `{}`: {}", name(op), cause), std::move(hint));
}

bool is_float(DType type) {
  return type == DType::f16 || type == DType::bf16 || type == DType::f32;
}

// One change of the picture's geometry.
struct Step {
  enum class What : std::uint8_t { random_crop, shorter_side, exact_size, center_crop } what;
  std::uint32_t height = 0, width = 0;
  Filter filter = Filter::bilinear;
  RandomResizedCrop random{};
  std::uint32_t stream = 0;  // of random numbers

  bool resizes() const noexcept { return what != What::center_crop; }
};

enum class Values : std::uint8_t { raw, unit };  // 0..255 as stored, or [0, 1]

// One list of operations on pictures.
struct ImagePlan {
  std::vector<Step> steps;
  std::array<Filter, kMostResizes> filters{};
  std::array<std::uint32_t, kMostResizes> step_of{};  // of each resize
  std::uint32_t resizes = 0;

  double flip_p = 0;
  std::uint32_t flip_at = 0;  // steps before the flip
  bool has_flip = false;

  bool has_window = false, window_last = false;  // last: a resize comes first
  Window window;

  Values values = Values::raw;
  std::vector<float> mean, std;  // one per channel, or empty

  bool deep = false;
  StoreShape store;
  std::vector<std::byte> table;  // for bytes; empty: stored as they are
};

// Every operation draws from a stream of its own, so that none shifts the numbers of another. A stream is named by the
// kind of operation and by which of its kind it is.
std::uint32_t stream_of(const Op& op, std::uint32_t occurrence) {
  return static_cast<std::uint32_t>(op.what.index()) * 256 + occurrence;
}
constexpr std::uint32_t kFlipStream = 3 * 256, kWindowStream = 6 * 256;
static_assert(std::is_same_v<std::variant_alternative_t<3, decltype(Op::what)>, HorizontalFlip>);
static_assert(std::is_same_v<std::variant_alternative_t<6, decltype(Op::what)>, Window>);

Random stream(std::uint64_t key, std::uint32_t number) noexcept {
  return Random(key, 0, 0, number);
}

// Python's round(): halves to even.
std::uint32_t rounded(double value) noexcept {
  return static_cast<std::uint32_t>(std::nearbyint(value));
}

std::uint32_t center_offset(std::uint32_t outer, std::uint32_t inner) noexcept {
  return rounded((outer - inner) / 2.0);
}

// torchvision's Resize(int).
std::pair<std::uint32_t, std::uint32_t> shorter_side(std::uint32_t width, std::uint32_t height,
                                                     std::uint32_t side) noexcept {
  const bool upright = width <= height;
  const std::uint64_t low = upright ? width : height, high = upright ? height : width;
  const auto longer = static_cast<std::uint32_t>(std::min<std::uint64_t>(side * high / low, 0xFFFFFFFF));
  return upright ? std::pair{side, longer} : std::pair{longer, side};
}

// torchvision's RandomResizedCrop.get_params.
Rect random_crop(const RandomResizedCrop& op, std::uint32_t width, std::uint32_t height, Random random) noexcept {
  const double area = static_cast<double>(width) * height;
  const double log_low = std::log(op.ratio_min), log_high = std::log(op.ratio_max);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * random.uniform(op.scale_min, op.scale_max);
    const double ratio = std::exp(random.uniform(log_low, log_high));
    const double w = std::nearbyint(std::sqrt(target * ratio)), h = std::nearbyint(std::sqrt(target / ratio));
    if (w > 0 && w <= width && h > 0 && h <= height) {
      Rect rect{0, 0, static_cast<std::uint32_t>(w), static_cast<std::uint32_t>(h)};
      rect.y = random.below(height - rect.height + 1);
      rect.x = random.below(width - rect.width + 1);
      return rect;
    }
  }
  const double ratio = static_cast<double>(width) / height;
  Rect rect{0, 0, width, height};
  if (ratio < op.ratio_min) {
    rect.height = std::clamp(rounded(width / op.ratio_min), 1u, height);
  } else if (ratio > op.ratio_max) {
    rect.width = std::clamp(rounded(height * op.ratio_max), 1u, width);
  }
  rect.x = (width - rect.width) / 2;
  rect.y = (height - rect.height) / 2;
  return rect;
}

std::string size_text(std::uint32_t height, std::uint32_t width) {
  return fmt::format("{}x{}", height, width);
}

// Reads one list of picture operations, in order, and refuses what cannot be.
class ImageCompiler {
 public:
  ImageCompiler(const Input& input, const OutputOptions& options)
      : input_(input), options_(options), width_(input.width), height_(input.height) {}

  ImagePlan compile(const Ops& ops) {
    for (const Op& op : ops) {
      check_op(op);
      std::visit([&](const auto& what) { add(op, what); }, op.what);
    }
    finish();
    return std::move(plan_);
  }

 private:
  void add(const Op& op, const RandomResizedCrop& what) {
    refuse_after_float(op);
    Step step{Step::What::random_crop, what.height, what.width, what.filter, what, 0};
    step.stream = stream_of(op, static_cast<std::uint32_t>(plan_.steps.size()));
    add_resize(op, step);
    fixed_ = true;
    width_ = what.width, height_ = what.height;
    shorter_ = std::min(width_, height_);
  }

  void add(const Op& op, const Resize& what) {
    refuse_after_float(op);
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
    const bool too_large = fixed_ ? what.width > width_ || what.height > height_
                                  : shorter_ != 0 && std::max(what.width, what.height) > shorter_ &&
                                        std::min(what.width, what.height) > shorter_;
    if (too_large) {
      refuse(op,
             fmt::format("{} does not fit into the {} that comes before it", size_text(what.height, what.width),
                         fixed_ ? size_text(height_, width_) : fmt::format("shorter side of {}", shorter_)),
             "make the size before it larger, or the crop smaller");
    }
    plan_.steps.push_back({Step::What::center_crop, what.height, what.width, Filter::bilinear, {}, 0});
    fixed_ = true;
    width_ = what.width, height_ = what.height;
    shorter_ = std::min(width_, height_);
  }

  void add(const Op& op, const HorizontalFlip& what) {
    if (plan_.has_flip) refuse(op, "it is given twice");
    plan_.has_flip = true;
    plan_.flip_p = what.p;
    plan_.flip_at = static_cast<std::uint32_t>(plan_.steps.size());
  }

  void add(const Op& op, const Normalize& what) {
    if (!plan_.mean.empty()) refuse(op, "it is given twice");
    if (what.mean.size() != 1 && what.mean.size() != input_.channels) {
      refuse(op,
             fmt::format("it has {} means, but the pictures have {} channel{}", what.mean.size(), input_.channels,
                         input_.channels == 1 ? "" : "s"),
             "give one mean and std per channel, or choose color=\"rgb\" or \"gray\"");
    }
    for (std::size_t c = 0; c < input_.channels; ++c) {
      plan_.mean.push_back(what.mean[what.mean.size() == 1 ? 0 : c]);
      plan_.std.push_back(what.std[what.mean.size() == 1 ? 0 : c]);
    }
    plan_.values = Values::unit;
  }

  void add(const Op& op, const ToFloat&) {
    if (!plan_.mean.empty()) refuse(op, "Normalize before it has made floats already", "leave ToFloat out");
    if (to_float_) refuse(op, "it is given twice");
    to_float_ = true;
    plan_.values = Values::unit;
  }

  void add(const Op& op, const Window& what) {
    if (plan_.has_window) refuse(op, "it is given twice");
    if (input_.bits != 16) refuse(op, "it needs 16-bit pictures, and these have 8 bits", "leave Window out");
    refuse_after_float(op);
    plan_.has_window = true;
    plan_.window = what;
    plan_.window_last = plan_.resizes != 0;
    plan_.values = Values::unit;
  }

  void add(const Op& op, const PadOrTrim&) { refuse_sound(op); }
  void add(const Op& op, const Resample&) { refuse_sound(op); }
  void add(const Op& op, const Mono&) { refuse_sound(op); }
  void add(const Op& op, const Views&) {
    refuse(op, "it stands alone", "put the other operations into the lists of its groups");
  }

  void add_resize(const Op& op, const Step& step) {
    if (plan_.resizes == kMostResizes) refuse(op, fmt::format("pictures are resized more than {} times", kMostResizes));
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

  [[noreturn]] static void refuse_sound(const Op& op) {
    refuse(op, "it is for sound, and these are pictures", "leave it out, or choose the sounds of the data set");
  }

  void finish() {
    if (width_ == 0 || height_ == 0) {
      throw Error(ErrorKind::usage, "cannot compile the transform: the size of the pictures is not known",
                  "add Resize((height, width)) or RandomResizedCrop(size)");
    }
    plan_.deep = plan_.has_window || (to_float_ && input_.bits == 16);
    const bool floats = plan_.values == Values::unit;
    const DType dtype = options_.dtype.value_or(floats ? DType::f32 : DType::u8);
    if (dtype != DType::u8 && !is_float(dtype)) {
      throw Error(ErrorKind::usage, fmt::format("cannot give pictures as {}", name(dtype)),
                  "choose dtype uint8, float16, bfloat16 or float32");
    }
    if (floats && dtype == DType::u8) {
      const std::string_view by = !plan_.mean.empty() ? "Normalize" : plan_.has_window ? "Window" : "ToFloat";
      throw Error(ErrorKind::usage, fmt::format("cannot give pictures as uint8: {} makes them float", by),
                  fmt::format("leave {} out, or choose dtype float32, float16 or bfloat16", by));
    }
    plan_.store = {width_, height_, input_.channels, options_.layout == Layout::nchw, dtype};
    if (!plan_.deep && dtype != DType::u8) make_table(dtype);
  }

  // The order of float32 operations is that of torchvision's ToTensor and Normalize.
  void make_table(DType dtype) {
    const std::size_t count = std::size_t{input_.channels} * 256;
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
  }

  const Input& input_;
  const OutputOptions& options_;
  ImagePlan plan_;
  std::uint32_t width_, height_;  // so far, of the first picture
  bool fixed_ = false;            // for every picture
  std::uint32_t shorter_ = 0;     // for every picture; 0: not known
  bool to_float_ = false;
};

std::string describe_image(const ImagePlan& plan) {
  std::vector<std::string> words;
  const auto add_flip = [&](std::size_t at) {
    if (plan.has_flip && plan.flip_at == at) words.push_back(fmt::format("flip p={}", plan.flip_p));
  };
  const auto add_window = [&] {
    const Window& w = plan.window;
    const auto range = [](double low, double high) {
      return low == high ? fmt::format("{}", low) : fmt::format("{}..{}", low, high);
    };
    words.push_back(
        fmt::format("window level {} width {}", range(w.level_min, w.level_max), range(w.width_min, w.width_max)));
  };
  if (plan.has_window && !plan.window_last) add_window();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    add_flip(i);
    const Step& step = plan.steps[i];
    switch (step.what) {
      case Step::What::random_crop:
        words.push_back(fmt::format("RandomResizedCrop {} {}", size_text(step.height, step.width), name(step.filter)));
        break;
      case Step::What::shorter_side:
        words.push_back(fmt::format("Resize shorter side {} {}", step.height, name(step.filter)));
        break;
      case Step::What::exact_size:
        words.push_back(fmt::format("Resize {} {}", size_text(step.height, step.width), name(step.filter)));
        break;
      case Step::What::center_crop:
        words.push_back("CenterCrop " + size_text(step.height, step.width));
        break;
    }
  }
  add_flip(plan.steps.size());
  if (plan.has_window && plan.window_last) add_window();
  if (!plan.mean.empty()) {
    words.push_back("normalize");
  } else if (plan.values == Values::unit && !plan.has_window) {
    words.push_back("to [0, 1]");
  }
  return fmt::format("{}", fmt::join(words, " -> "));
}

std::string describe_output(const Output& output, Kind kind) {
  std::string shape;
  for (std::size_t i = 0; i < output.shape.size(); ++i) {
    const bool open = output.varies && i + 1 == output.shape.size();
    shape += (i == 0 ? "" : ", ") + (open ? std::string("frames") : fmt::format("{}", output.shape[i]));
  }
  std::string_view layout;
  if (kind == Kind::image) {
    layout = output.layout == Layout::nchw   ? " NCHW"
             : output.layout == Layout::nhwc ? " NHWC"
                                             : " NCHW in channels_last order";
  }
  return fmt::format("{}{} [{}]", name(output.dtype), layout, shape);
}

struct SoundPlan {
  bool mono = false;
  std::uint32_t hz = 0;        // 0: as it is
  std::uint64_t frames = 0;    // 0: as many as there are
  std::uint32_t channels = 1;  // that leave
  DType dtype = DType::f32;
  // For the first sample's rate; others are made when they come.
  std::vector<std::int32_t> first;
  std::vector<float> weights;
  SincTable table;
};

SoundPlan compile_sound(const Ops& ops, const Input& input, const OutputOptions& options) {
  SoundPlan plan;
  for (const Op& op : ops) {
    check_op(op);
    if (std::holds_alternative<Mono>(op.what)) {
      if (plan.mono) refuse(op, "it is given twice");
      plan.mono = true;
    } else if (const auto* const to = std::get_if<Resample>(&op.what)) {
      if (plan.hz != 0) refuse(op, "it is given twice");
      if (plan.frames != 0) {
        refuse(op, "it cannot come after PadOrTrim, which counts frames at the rate that leaves",
               "put Resample before PadOrTrim");
      }
      plan.hz = to->hz;
    } else if (const auto* const pad = std::get_if<PadOrTrim>(&op.what)) {
      if (plan.frames != 0) refuse(op, "it is given twice");
      plan.frames = pad->frames;
    } else if (std::holds_alternative<ToFloat>(op.what)) {
      refuse(op, "sound is float already", "leave ToFloat out, or choose dtype float32, float16 or bfloat16");
    } else {
      refuse(op, "it is for pictures, and these are sounds", "sounds take Mono, Resample and PadOrTrim");
    }
  }
  plan.dtype = options.dtype.value_or(DType::f32);
  if (!is_float(plan.dtype)) {
    throw Error(ErrorKind::usage, fmt::format("cannot give sound as {}", name(plan.dtype)),
                "choose dtype float32, float16 or bfloat16");
  }
  plan.channels = plan.mono ? 1 : input.audio_channels;
  if (plan.hz != 0 && input.rate_hz != 0 && plan.hz != input.rate_hz) {
    const SincSize size = sinc_size(input.rate_hz, plan.hz);
    if (!size.usable) {
      throw Error(ErrorKind::usage,
                  fmt::format("cannot use transform `Resample`: {} Hz and {} Hz have too little in common",
                              input.rate_hz, plan.hz),
                  "choose a rate that shares a larger divisor, such as 16000");
    }
    plan.first.resize(size.to);
    plan.weights.resize(std::size_t{size.to} * size.taps);
    plan.table = make_sinc(size, plan.first.data(), plan.weights.data());
  }
  return plan;
}

std::string describe_sound(const SoundPlan& plan) {
  std::vector<std::string> words;
  if (plan.mono) words.emplace_back("mono");
  if (plan.hz != 0) words.push_back(fmt::format("resample to {} Hz", plan.hz));
  if (plan.frames != 0) words.push_back(fmt::format("pad or trim to {} frames", plan.frames));
  return fmt::format("{}", fmt::join(words, " -> "));
}

struct ArrayPlan {
  DType from = DType::u8, to = DType::u8;
  float divisor = 1;
  std::uint64_t count = 1;
};

ArrayPlan compile_array(const Ops& ops, const Input& input, const OutputOptions& options) {
  ArrayPlan plan;
  plan.from = input.dtype;
  for (const std::uint64_t extent : input.shape) plan.count *= extent;
  bool to_float = false;
  for (const Op& op : ops) {
    check_op(op);
    if (!std::holds_alternative<ToFloat>(op.what)) {
      refuse(op,
             fmt::format("these samples are {} arrays [{}], which take ToFloat or dtype= alone", name(input.dtype),
                         fmt::join(input.shape, ", ")),
             "arrays count as pictures when a sample is uint8 [H, W], [H, W, 1] or [H, W, 3], or uint16 [H, W]");
    }
    if (to_float) refuse(op, "it is given twice");
    to_float = true;
    const bool known =
        input.dtype == DType::u8 || input.dtype == DType::u16 || is_float(input.dtype) || input.dtype == DType::f64;
    if (!known) {
      refuse(op, fmt::format("it takes uint8, uint16 and float arrays, and these are {}", name(input.dtype)),
             "choose dtype=\"float32\", which converts without scaling");
    }
    plan.divisor = input.dtype == DType::u8 ? 255.0F : input.dtype == DType::u16 ? 65535.0F : 1.0F;
  }
  plan.to = options.dtype.value_or(to_float ? DType::f32 : input.dtype);
  if (plan.to != plan.from && !is_float(plan.to)) {
    throw Error(ErrorKind::usage, fmt::format("cannot give {} arrays as {}", name(plan.from), name(plan.to)),
                fmt::format("choose dtype float32, float16 or bfloat16, or leave it {}", name(plan.from)));
  }
  if (to_float && !is_float(plan.to)) {
    throw Error(ErrorKind::usage, fmt::format("cannot give arrays as {}: ToFloat makes them float", name(plan.to)),
                "leave ToFloat out, or choose dtype float32, float16 or bfloat16");
  }
  return plan;
}

template <typename T>
void read_elements(const std::byte* from, std::size_t count, float* into) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    into[i] = static_cast<float>(value);
  }
}

void read_floats(DType type, const std::byte* from, std::size_t count, float* into) noexcept {
  switch (type) {
    case DType::u8:
    case DType::boolean:
      return read_elements<std::uint8_t>(from, count, into);
    case DType::i8:
      return read_elements<std::int8_t>(from, count, into);
    case DType::u16:
      return read_elements<std::uint16_t>(from, count, into);
    case DType::i16:
      return read_elements<std::int16_t>(from, count, into);
    case DType::u32:
      return read_elements<std::uint32_t>(from, count, into);
    case DType::i32:
      return read_elements<std::int32_t>(from, count, into);
    case DType::u64:
      return read_elements<std::uint64_t>(from, count, into);
    case DType::i64:
      return read_elements<std::int64_t>(from, count, into);
    case DType::f32:
      return read_elements<float>(from, count, into);
    case DType::f64:
      return read_elements<double>(from, count, into);
    case DType::f16:
    case DType::bf16:
      for (std::size_t i = 0; i < count; ++i) {
        std::uint16_t half = 0;
        std::memcpy(&half, from + i * 2, 2);
        into[i] = type == DType::f16 ? from_float16(half) : from_bfloat16(half);
      }
  }
}

template <typename T>
T* take(Scratch& scratch, std::size_t count) noexcept {
  return reinterpret_cast<T*>(scratch.take(count * sizeof(T)).data());
}

// The rectangles that each resize must give, from the last one back to the source.
struct Needs {
  Resizing resizings[kMostResizes];
  Rect source;
};

Needs needs_of(const ImagePlan& plan, const Draw& draw) noexcept {
  Needs needs;
  Rect keep = draw.steps[plan.resizes];
  for (std::uint32_t i = plan.resizes; i-- > 0;) {
    const Rect& from = draw.steps[i];
    Resizing& r = needs.resizings[i];
    r = {from.width,
         from.height,
         draw.sizes[i][0],
         draw.sizes[i][1],
         plan.filters[i],
         draw.flip && plan.flip_at <= plan.step_of[i],
         keep};
    keep = needed(r);
    keep.x += from.x;
    keep.y += from.y;
  }
  needs.source = keep;
  return needs;
}

// The u16 source as float32: windowed, scaled to [0, 1], or as it is when the window comes after a resize.
void load_deep(const ImagePlan& plan, const Pixels& source, const Rect& region, const Rect& need, float shift,
               float scale, float* into) noexcept {
  const std::size_t elements = std::size_t{need.width} * source.channels;
  for (std::uint32_t y = 0; y < need.height; ++y) {
    const std::byte* const row = source.data + std::size_t{need.y - region.y + y} * source.stride_bytes +
                                 std::size_t{need.x - region.x} * source.channels * sizeof(std::uint16_t);
    float* const out = into + y * elements;
    read_elements<std::uint16_t>(row, elements, out);
    if (plan.has_window && !plan.window_last) {
      for (std::size_t i = 0; i < elements; ++i) out[i] = std::clamp((out[i] - shift) * scale, 0.0F, 1.0F);
    } else if (!plan.has_window) {
      for (std::size_t i = 0; i < elements; ++i) out[i] = out[i] / 65535.0F;
    }
  }
}

// Runs the resizes and hands each row of the view to `store(y, row)`.
template <typename T, typename Store>
Result run_resizes(const ImagePlan& plan, const Draw& draw, const Needs& needs, Part<T> source, Scratch& scratch,
                   Store store) noexcept {
  if (plan.resizes == 0) {
    const Rect& keep = draw.steps[0];
    for (std::uint32_t y = 0; y < keep.height; ++y) store(y, source.at(keep.x, std::int64_t{keep.y} + y));
    return {};
  }
  for (std::uint32_t i = 0; i < plan.resizes; ++i) {
    const Resizing& r = needs.resizings[i];
    source.x -= draw.steps[i].x;  // coordinates of the crop that is resized
    source.y -= draw.steps[i].y;
    Resizer<T> resizer;
    const Result prepared = resizer.prepare(source, r, scratch);
    if (!prepared.ok()) return prepared;
    if (i + 1 == plan.resizes) {
      for (std::uint32_t y = 0; y < r.keep.height; ++y) store(y, resizer.row(y));
      break;
    }
    const std::size_t elements = std::size_t{r.keep.width} * source.channels;
    T* const next = take<T>(scratch, elements * r.keep.height);
    if (next == nullptr) return kNoMemory;
    for (std::uint32_t y = 0; y < r.keep.height; ++y)
      std::memcpy(next + y * elements, resizer.row(y), elements * sizeof(T));
    source = {next, elements, r.keep.x, r.keep.y, r.keep.width, r.keep.height, source.channels};
  }
  return {};
}

[[maybe_unused]] bool contains(const Rect& outer, const Rect& inner) noexcept {
  return inner.x >= outer.x && inner.y >= outer.y && inner.x - outer.x + inner.width <= outer.width &&
         inner.y - outer.y + inner.height <= outer.height;
}

}  // namespace

struct Plan::Compiled {
  std::vector<ImagePlan> images;  // one per output
  std::vector<std::uint32_t> image_of_view;
  SoundPlan sound;
  ArrayPlan array;
  std::string words;
};

Plan Plan::compile(const Ops& ops, const Input& input, const OutputOptions& options) {
  Plan plan;
  auto compiled = std::make_shared<Compiled>();
  plan.input_ = input;

  if (input.kind == Kind::image) {
    if (input.channels < 1 || input.channels > 4 || (input.bits != 8 && input.bits != 16)) {
      throw Error(ErrorKind::usage,
                  fmt::format("cannot transform pictures of {} channels of {} bits", input.channels, input.bits),
                  "1 to 4 channels of 8 or 16 bits are possible");
    }
    const auto add = [&](std::string_view name, std::uint32_t views, const Ops& list) {
      ImagePlan image = ImageCompiler(input, options).compile(list);
      const StoreShape& s = image.store;
      Output output;
      output.name = name;
      output.dtype = s.dtype;
      output.layout = options.layout;
      output.views = views;
      output.first_view = static_cast<std::uint32_t>(compiled->image_of_view.size());
      if (options.layout == Layout::nhwc) {
        output.shape = {s.height, s.width, s.channels};
      } else {
        output.shape = {s.channels, s.height, s.width};
      }
      output.view_bytes = std::size_t{s.width} * s.height * s.channels * size_of(s.dtype);
      const std::string words = describe_image(image);
      const std::string end = describe_output(output, input.kind);
      const std::string line = words.empty() ? end : words + " -> " + end;
      compiled->words += name == "data"
                             ? line
                             : fmt::format("{}{}: {} x ({})", compiled->words.empty() ? "" : "; ", name, views, line);
      compiled->image_of_view.insert(compiled->image_of_view.end(), views,
                                     static_cast<std::uint32_t>(compiled->images.size()));
      compiled->images.push_back(std::move(image));
      plan.outputs_.push_back(std::move(output));
    };
    const auto views =
        std::find_if(ops.begin(), ops.end(), [](const Op& op) { return std::holds_alternative<Views>(op.what); });
    if (views == ops.end()) {
      add("data", 1, ops);
    } else {
      check_op(*views);
      if (ops.size() != 1) refuse(*views, "it stands alone", "put the other operations into the lists of its groups");
      for (const Views::Group& group : std::get<Views>(views->what).groups) add(group.name, group.count, group.ops);
    }
    for (const ImagePlan& image : compiled->images) plan.deep_ = plan.deep_ || image.deep;
    for (std::size_t i = 0; i < compiled->images.size(); ++i) {
      if (compiled->images[i].deep != plan.deep_) {
        throw Error(ErrorKind::usage,
                    fmt::format("cannot use transform `Views`: group `{}` takes 8 bits while another takes 16",
                                plan.outputs_[i].name),
                    "give every group Window or ToFloat, or none");
      }
    }
    plan.view_count_ = static_cast<std::uint32_t>(compiled->image_of_view.size());
  } else {
    Output output;
    output.name = "data";
    std::string words;
    if (input.kind == Kind::audio) {
      compiled->sound = compile_sound(ops, input, options);
      const SoundPlan& sound = compiled->sound;
      plan.output_channels_ = sound.channels;
      plan.audio_is_direct_ = !sound.mono && sound.hz == 0 && sound.dtype == DType::f32;
      output.dtype = sound.dtype;
      if (sound.channels != 1) output.shape.push_back(sound.channels);
      output.shape.push_back(sound.frames);
      output.varies = sound.frames == 0;
      output.view_bytes = static_cast<std::size_t>(sound.frames) * sound.channels * size_of(sound.dtype);
      words = describe_sound(sound);
    } else {
      compiled->array = compile_array(ops, input, options);
      const ArrayPlan& array = compiled->array;
      plan.array_is_copy_ = array.from == array.to && array.divisor == 1.0F;
      output.dtype = array.to;
      output.shape = input.shape;
      output.view_bytes = static_cast<std::size_t>(array.count) * size_of(array.to);
      if (array.divisor != 1.0F) words = "to [0, 1]";
    }
    const std::string end = describe_output(output, input.kind);
    compiled->words = words.empty() ? end : words + " -> " + end;
    plan.outputs_.push_back(std::move(output));
  }
  plan.compiled_ = std::move(compiled);
  return plan;
}

std::string Plan::describe() const {
  return compiled_->words;
}

Result Plan::draw(std::uint32_t view, std::uint32_t width, std::uint32_t height, Random& random,
                  Draw& draw) const noexcept {
  assert(view < view_count_ && "draw: no such view");
  const ImagePlan& plan = compiled_->images[compiled_->image_of_view[view]];
  draw = {};
  if (width == 0 || height == 0) return failed(Code::corrupt, "picture has no pixels");
  const std::uint64_t low = random.next();
  const std::uint64_t key = low | std::uint64_t{random.next()} << 32;
  draw.flip = plan.has_flip && stream(key, kFlipStream).uniform() < plan.flip_p;
  if (plan.has_window) {
    Random numbers = stream(key, kWindowStream);
    const double level = numbers.uniform(plan.window.level_min, plan.window.level_max);
    const double range = numbers.uniform(plan.window.width_min, plan.window.width_max);
    draw.window_low = static_cast<float>(level - range / 2);
    draw.window_scale = static_cast<float>(1 / range);
  }

  // Everything is laid out as if the flip came last; what comes after a flip takes its place from the right.
  Rect kept{0, 0, width, height};
  std::uint32_t resizes = 0;
  for (std::uint32_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const auto narrow = [&](Rect inner) {
      if (draw.flip && plan.flip_at <= i) inner.x = kept.width - inner.x - inner.width;
      kept = {kept.x + inner.x, kept.y + inner.y, inner.width, inner.height};
    };
    std::uint32_t to_width = step.width, to_height = step.height;
    switch (step.what) {
      case Step::What::random_crop:
        narrow(random_crop(step.random, kept.width, kept.height, stream(key, step.stream)));
        break;
      case Step::What::exact_size:
        break;
      case Step::What::shorter_side:
        std::tie(to_width, to_height) = shorter_side(kept.width, kept.height, step.height);
        if (std::max(to_width, to_height) > 1u << 20)
          return failed(Code::too_large, "picture is too long and thin to resize its shorter side");
        break;
      case Step::What::center_crop:
        if (step.width > kept.width || step.height > kept.height) {
          return failed(Code::mismatch, "picture is smaller than CenterCrop: put Resize before it");
        }
        narrow(
            {center_offset(kept.width, step.width), center_offset(kept.height, step.height), step.width, step.height});
        break;
    }
    if (step.resizes()) {
      draw.steps[resizes] = kept;
      draw.sizes[resizes][0] = to_width;
      draw.sizes[resizes][1] = to_height;
      ++resizes;
      kept = {0, 0, to_width, to_height};
    }
  }
  if (kept.width != plan.store.width || kept.height != plan.store.height) {
    return failed(
        Code::mismatch,
        "picture has another size than the first one: add Resize((height, width)) or RandomResizedCrop(size)");
  }
  draw.steps[resizes] = kept;
  draw.crop = needs_of(plan, draw).source;
  return {};
}

Result Plan::apply(std::uint32_t view, const Draw& draw, const Pixels& source, const Rect& region, double offset,
                   std::byte* slot, Scratch& scratch) const noexcept {
  assert(view < view_count_ && "apply: no such view");
  assert(contains(region, draw.crop) && "apply: the source lacks pixels that draw asked for");
  assert(source.width == region.width && source.height == region.height && "apply: the source is not the region");
  const ImagePlan& plan = compiled_->images[compiled_->image_of_view[view]];
  const StoreShape& shape = plan.store;
  if (source.channels != shape.channels) {
    return failed(Code::mismatch,
                  "picture has another channel count than the first one: choose color=\"rgb\" or \"gray\"");
  }
  if (source.dtype != (plan.deep ? DType::u16 : DType::u8)) {
    return failed(Code::mismatch, "picture has another bit depth than the plan was made for");
  }
  const Needs needs = needs_of(plan, draw);

  if (!plan.deep) {
    const Part<std::uint8_t> part{reinterpret_cast<const std::uint8_t*>(source.data),
                                  source.stride_bytes,
                                  region.x,
                                  region.y,
                                  region.width,
                                  region.height,
                                  source.channels};
    const void* const table = plan.table.empty() ? nullptr : plan.table.data();
    return run_resizes(plan, draw, needs, part, scratch, [&](std::uint32_t y, const std::uint8_t* row) {
      store_row(shape, row, y, draw.flip, table, slot);
    });
  }

  const Rect& need = needs.source;
  const std::size_t elements = std::size_t{need.width} * source.channels;
  float* const loaded = take<float>(scratch, elements * need.height);
  const std::size_t row_elements = std::size_t{shape.width} * shape.channels;
  float* const line = take<float>(scratch, row_elements);
  if (loaded == nullptr || line == nullptr) return kNoMemory;
  const float shift = static_cast<float>(draw.window_low + plan.window.offset.value_or(offset));
  const float scale = draw.window_scale;
  load_deep(plan, source, region, need, shift, scale, loaded);
  const Part<float> part{loaded, elements, need.x, need.y, need.width, need.height, source.channels};
  return run_resizes(plan, draw, needs, part, scratch, [&](std::uint32_t y, const float* row) {
    if (plan.window_last) {
      for (std::size_t i = 0; i < row_elements; ++i) line[i] = std::clamp((row[i] - shift) * scale, 0.0F, 1.0F);
      row = line;
    }
    if (!plan.mean.empty()) {
      for (std::size_t x = 0, i = 0; x < shape.width; ++x) {
        for (std::uint32_t c = 0; c < shape.channels; ++c, ++i) line[i] = (row[i] - plan.mean[c]) / plan.std[c];
      }
      row = line;
    }
    store_row(shape, row, y, draw.flip, slot);
  });
}

std::uint64_t Plan::output_frames(std::uint64_t frames, std::uint32_t rate_hz) const noexcept {
  const SoundPlan& plan = compiled_->sound;
  if (plan.frames != 0) return plan.frames;
  return plan.hz == 0 ? frames : resampled_frames(frames, rate_hz, plan.hz);
}

Result Plan::check_audio(std::uint32_t channels, std::uint32_t rate_hz) const noexcept {
  const SoundPlan& plan = compiled_->sound;
  if (channels == 0 || rate_hz == 0) return failed(Code::corrupt, "sound has no channels or no rate");
  if (!plan.mono && channels != input_.audio_channels) {
    return failed(Code::mismatch, "sound has another channel count than the first one: add Mono()");
  }
  if (plan.hz == 0 && rate_hz != input_.rate_hz) {
    return failed(Code::mismatch, "sound has another sample rate than the first one: add Resample(hz)");
  }
  if (plan.hz != 0 && rate_hz != plan.hz && !sinc_size(rate_hz, plan.hz).usable) {
    return failed(Code::unsupported, "sample rate has too little in common with that of Resample");
  }
  return {};
}

Result Plan::apply_audio(const float* source, std::size_t channel_stride, std::uint64_t frames, std::uint32_t rate_hz,
                         std::byte* slot, std::uint64_t slot_frames, std::uint64_t& written, Scratch& scratch,
                         std::uint32_t channels) const noexcept {
  const SoundPlan& plan = compiled_->sound;
  const bool changes_rate = plan.hz != 0 && plan.hz != rate_hz;
  std::uint64_t count = changes_rate ? resampled_frames(frames, rate_hz, plan.hz) : frames;
  if (plan.frames != 0) count = std::min(count, plan.frames);
  written = 0;
  if (count > slot_frames) return failed(Code::too_large, "sound is longer than its slot");

  SincTable table = plan.table;
  std::uint64_t used = std::min(frames, count);  // source frames that matter
  if (changes_rate) {
    if (rate_hz != input_.rate_hz) {
      const SincSize size = sinc_size(rate_hz, plan.hz);
      if (!size.usable) return failed(Code::unsupported, "sample rate has too little in common with that of Resample");
      auto* const first = take<std::int32_t>(scratch, size.to);
      auto* const weights = take<float>(scratch, std::size_t{size.to} * size.taps);
      if (first == nullptr || weights == nullptr) return kNoMemory;
      table = make_sinc(size, first, weights);
    }
    used = std::min(frames, (count / table.to + 1) * table.from + table.taps);
  }

  const std::uint32_t source_channels = channels == 0 ? input_.audio_channels : channels;
  if (!plan.mono && source_channels != plan.channels) {
    return failed(Code::mismatch, "sound has another channel count than the first one: add Mono()");
  }
  const float* mixed = nullptr;
  if (plan.mono && source_channels > 1) {
    auto* const sum = take<float>(scratch, used);
    if (sum == nullptr) return kNoMemory;
    std::copy_n(source, used, sum);
    for (std::uint32_t c = 1; c < source_channels; ++c) {
      const float* const channel = source + c * channel_stride;
      for (std::uint64_t i = 0; i < used; ++i) sum[i] += channel[i];
    }
    const auto divisor = static_cast<float>(source_channels);
    for (std::uint64_t i = 0; i < used; ++i) sum[i] /= divisor;
    mixed = sum;
  }
  float* resampled = nullptr;
  if (changes_rate && plan.dtype != DType::f32) {
    resampled = take<float>(scratch, count);
    if (resampled == nullptr) return kNoMemory;
  }

  const std::size_t element = size_of(plan.dtype);
  for (std::uint32_t c = 0; c < plan.channels; ++c) {
    std::byte* const row = slot + c * slot_frames * element;
    const float* channel = mixed != nullptr ? mixed : source + c * channel_stride;
    if (changes_rate) {
      float* const into = resampled != nullptr ? resampled : reinterpret_cast<float*>(row);
      resample(table, channel, used, into, count);
      channel = into;
    }
    if (channel != reinterpret_cast<const float*>(row)) convert(channel, count, plan.dtype, row);
    std::memset(row + count * element, 0, (slot_frames - count) * element);
  }
  written = count;
  return {};
}

Result Plan::apply_array(const std::byte* source, std::byte* slot) const noexcept {
  const ArrayPlan& plan = compiled_->array;
  if (array_is_copy_) {
    std::memcpy(slot, source, plan.count * size_of(plan.to));
    return {};
  }
  std::array<float, 1024> chunk;
  for (std::uint64_t at = 0; at < plan.count; at += chunk.size()) {
    const std::size_t count = std::min<std::uint64_t>(chunk.size(), plan.count - at);
    read_floats(plan.from, source + at * size_of(plan.from), count, chunk.data());
    if (plan.divisor != 1.0F) {
      for (std::size_t i = 0; i < count; ++i) chunk[i] /= plan.divisor;
    }
    convert(chunk.data(), count, plan.to, slot + at * size_of(plan.to));
  }
  return {};
}

}  // namespace stoker::transform
