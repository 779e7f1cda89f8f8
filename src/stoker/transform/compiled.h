// What Plan::compile makes of a list of operations, one struct per kind of sample. Private to the plan*.cc files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stoker/base/result.h"
#include "stoker/transform/plan.h"
#include "stoker/transform/resize.h"
#include "stoker/transform/sinc.h"
#include "stoker/transform/store.h"

namespace stoker::transform {

inline constexpr std::uint32_t kMostResizes = std::size(Draw{}.steps) - 1;
inline constexpr Result kNoRoom = failed(Code::no_memory, "no room to transform the sample: raise memory_limit");

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
  std::uint32_t window_at = 0;                   // steps before the window
  Window window;

  Values values = Values::raw;
  std::vector<float> mean, std;          // one per channel, or empty
  std::uint32_t mean_at = 0;             // steps before Normalize
  std::vector<float> mean_row, std_row;  // of 16-bit pictures: one per element of a row, or empty

  bool deep = false;
  StoreShape store;
  std::vector<std::byte> table;  // for bytes; empty: stored as they are
};

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

struct ArrayPlan {
  DType from = DType::u8, to = DType::u8;
  float divisor = 1;
  std::uint64_t count = 1;
};

struct Plan::Compiled {
  std::vector<ImagePlan> images;  // one per output
  std::vector<std::uint32_t> image_of_view;
  SoundPlan sound;
  ArrayPlan array;
  std::string words;
};

// Each throws Error(usage) with one sentence naming the operation that cannot be.
ImagePlan compile_image(const Ops& ops, const Input& input, const OutputOptions& options);
SoundPlan compile_sound(const Ops& ops, const Input& input, const OutputOptions& options);
ArrayPlan compile_array(const Ops& ops, const Input& input, const OutputOptions& options);

std::string describe_image(const ImagePlan& plan);
std::string describe_sound(const SoundPlan& plan);

// The rectangles that each resize must give, from the last one back to the source.
struct Needs {
  Resizing resizings[kMostResizes];
  Rect source;
};

Needs needs_of(const ImagePlan& plan, const Draw& draw) noexcept;

[[noreturn]] void refuse(const Op& op, std::string_view cause, std::string hint = {});
bool is_float(DType type) noexcept;

// torchvision's Resize(int): width and height that leave.
std::pair<std::uint32_t, std::uint32_t> shorter_side(std::uint32_t width, std::uint32_t height,
                                                     std::uint32_t side) noexcept;

}  // namespace stoker::transform
