// What ImagePlan::compile makes of a list of operations. Private to the image*.cc files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stoker/base/result.h"
#include "stoker/transform/draw_actions.h"
#include "stoker/transform/image_plan.h"
#include "stoker/transform/resize.h"
#include "stoker/transform/store.h"

namespace stoker::transform {

inline constexpr std::uint32_t kMostResizes = std::size(Draw{}.steps) - 1;

// One change of the image's geometry.
struct Step {
  enum class What : std::uint8_t { random_crop, shorter_side, exact_size, center_crop, random_window, corner } what;
  std::uint32_t height = 0, width = 0;
  Filter filter = Filter::bilinear;
  RandomResizedCrop random{};
  std::uint32_t stream = 0;  // of random numbers
  Corner corner = Corner::top_left;

  bool resizes() const noexcept {
    return what == What::random_crop || what == What::shorter_side || what == What::exact_size;
  }
};

enum class Values : std::uint8_t { raw, unit };  // 0..255 as stored, or [0, 1]

// One list of operations on images: geometry, then augmentations, then what follows them.
struct ImageProgram {
  std::uint32_t channels = 3;  // that reach it
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
  std::uint32_t offset_value = 0;  // which of the values is the offset, where the chain's window has none

  Values values = Values::raw;
  std::vector<float> mean, std;          // one per channel, or empty
  std::uint32_t mean_at = 0;             // steps before Normalize
  std::vector<float> mean_row, std_row;  // of 16-bit images: one per element of a row, or empty

  std::vector<Augment> augments;
  std::shared_ptr<const ImageProgram> next;  // takes what the augmentations leave; null: that is stored
  std::vector<Augment> erasings;             // on what is stored: RandomErasing, operations on values, flips after them

  std::uint32_t first_pass = UINT32_MAX;  // of the first program of a chain: the number of its first pass; else none

  bool deep = false;         // 16-bit images
  bool takes_words = false;  // 16-bit images, as they are stored; else what the program before it left

  // Of the last program of a chain.
  bool divides = false;  // ToFloat of 16-bit images: by 65535
  StoreShape store;
  std::vector<std::byte> table;  // for bytes; empty: stored as they are

  bool is_chain() const noexcept { return next != nullptr || !augments.empty(); }
  const ImageProgram& last() const noexcept { return next == nullptr ? *this : next->last(); }
  // That of any program of the chain; null: there is none.
  const Window* window_of_chain() const noexcept {
    return has_window ? &window : next == nullptr ? nullptr : next->window_of_chain();
  }
};

struct ImagePlan::Compiled {
  std::vector<ImageProgram> programs;  // one per output, but for FiveCrop and TenCrop: one per view
  std::vector<std::uint32_t> program_of_view;
  std::vector<Pass> passes;
  std::string words;
};

inline const ImageProgram& ImagePlan::program_of(std::uint32_t view) const noexcept {
  return compiled_->programs[compiled_->program_of_view[view]];
}

// "96x128", as messages say it.
std::string height_by_width(std::uint32_t height, std::uint32_t width);

// Throws Error(usage) with one sentence naming the operation that cannot be. image_compiler.cc has it.
ImageProgram compile_image(const Ops& ops, const ImageInput& input, const OutputOptions& options);

std::string describe_image(const ImageProgram& plan);
// Adds the passes of a chain, in the order in which image_chain.h times them.
void add_passes(const ImageProgram& plan, const std::string& output, std::vector<Pass>& passes);

// The rectangles that each resize must give, from the last one back to the source.
struct Needs {
  Resizing resizings[kMostResizes];
  Rect source;
};

Needs needs_of(const ImageProgram& plan, const Draw& draw) noexcept;

// Draws the geometry of one program of a chain. `key` is the view's.
Result draw_geometry(const ImageProgram& plan, std::uint64_t key, std::uint32_t width, std::uint32_t height,
                     Draw& draw) noexcept;

inline constexpr Result kOtherSize =
    failed(Code::mismatch,
           "image has another size than the first one: add Resize((height, width)) or RandomResizedCrop(size)");

// torchvision's Resize(int): width and height that leave.
std::pair<std::uint32_t, std::uint32_t> shorter_side(std::uint32_t width, std::uint32_t height,
                                                     std::uint32_t side) noexcept;

}  // namespace stoker::transform
